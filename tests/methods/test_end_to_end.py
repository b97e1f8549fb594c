"""Training on images: a network under the hash layer, its pretrained weights, resuming to the same bytes."""

import numpy as np
import pytest
import torch
from refusing import refused
from resuming import assert_same_state, killed_and_resumed
from sets import labelled

import networks
from methods.base.augmentation import mirror
from methods.base.batches import ItemReader
from methods.base.catalogue import catalogue, load_class
from methods.base.nested import first_scores
from methods.base.training import Training

METADATA = catalogue()
DEEP = sorted(name for name, metadata in METADATA.items() if metadata.end_to_end)
# Their losses take scores with labels or affinities, and nothing else of an image, as that of talr_ap.
PLAIN = {"csq", "dch", "dhn", "dpsh", "dsdh", "dsh", "greedyhash", "hhf", "hyp2", "jmlh", "mihash"}
PLAIN |= {"orthohash", "psldh", "talr_ndcg"}
LEARNING = [name for name in DEEP if name not in PLAIN and METADATA[name].supervision != "none"]
SMALL = {"architecture": "small", "options": {}}
NORMALISED = {"architecture": "efficientnet_lite0", "options": {"image_size": 32}}
SETTINGS = {
    "bits": 8,
    "epochs": 3,
    "batch_size": 16,
    "learning_rate": 0.05,
    "backbone_lr_multiplier": 0.5,
    "horizontal_flip": True,
    "positives": 3,
    "negatives": 3,
}


def striped_images(count, seed=0):
    """uint8 (n, 32, 32, 3): stripes across, down, or none, under noise; and their classes."""
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    images = generator.integers(0, 120, (count, 32, 32, 3))
    images[labels == 0, ::4] += 120
    images[labels == 1, :, ::4] += 120
    return images.astype(np.uint8), labels


def training_set(count=60, network=SMALL, **more):
    return labelled(*striped_images(count), network=network, **more)


@pytest.fixture
def gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "cuda"


def made(name, **changes):
    own = {key: value for key, value in (SETTINGS | changes).items() if key in METADATA[name].parameters}
    return load_class(name)(**own)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "more", "network"),
    [
        *(("talr_ap", {}, SMALL), ("dpsh", {}, SMALL), ("csq", {}, SMALL)),
        *(("talr_ap", {"standardise_features": True}, SMALL), ("talr_ap", {"batch_size": 12}, NORMALISED)),
    ],
)
def test_an_interrupted_training_resumes_to_the_same_bytes(name, more, network, tmp_path, monkeypatch):
    def fit(**given):
        return made(name, **more).fit(training_set(24, network, **given))

    whole, lines, file = [], [], tmp_path / "run" / "mark.npz"
    alone = fit(log=whole.append)
    # Killed in the last epoch, after the second was written down.
    resumed, halves, again = killed_and_resumed(fit, file, 2)
    assert file.is_file()
    assert [record["epoch"] for record in again] == [1, 2, 3]
    assert all("ap" in record and record["images_per_second"] > 0 for record in again)
    assert [record["objective"] for record in again] == [record["objective"] for record in whole]
    seconds = [record["seconds"] for record in again]
    assert seconds[:2] == [record["seconds"] for record in halves[:2]]
    assert seconds == sorted(seconds)  # what the first attempt took counts too
    # Killed while it encoded, a training that was over is not made again.
    monkeypatch.setattr(Training, "_epoch", None)
    over = fit(log=lines.append, checkpoint=file)
    assert lines == again
    for other in (resumed, over):
        assert_same_state(alone, other)
    resumed.save(tmp_path)
    images, _ = striped_images(20, 1)
    assert np.array_equal(load_class(name).load(tmp_path).encode(images), alone.encode(images))


def test_a_checkpoint_that_cannot_be_read_is_an_error_that_names_it(tmp_path):
    file = tmp_path / "mark.npz"
    file.write_bytes(b"PK\x03\x04 cut off")
    with refused(str(file), "delete it", kind=ValueError):
        made("talr_ap").fit(training_set(checkpoint=file))


@pytest.mark.parametrize("name", ["mdsh", "shc", "dpn"])  # these look into their network, or ask it
def test_nested_codes_of_images_share_one_network(name):
    images, _ = striped_images(8)
    method = made(name, nested=[4, 6], epochs=1, standardise_features=True, update_every=1)
    method.fit(training_set(24))
    method.network.eval()
    for bits in (4, 6):
        view = first_scores(method.network, bits)
        items = torch.from_numpy(images)
        torch.testing.assert_close(view(items), method.network(items)[:, :bits])
        torch.testing.assert_close(view.features(items), method.network.features(items))
        assert {id(one) for one in view.parameters()} == {id(one) for one in method.network.parameters()}
    assert method.encode(images).shape == (8, 8)


def test_a_network_without_a_learning_rate_stays_as_it_is():
    """Its statistics, too, which batches would move."""
    method = made("bihalf", backbone_lr_multiplier=0.0).fit(training_set(network=NORMALISED))
    fresh = networks.make("efficientnet_lite0", seed=0, image_size=32).state_dict()
    found = method.network.backbone.state_dict()
    assert all(torch.equal(found[name], value) for name, value in fresh.items())


@pytest.mark.parametrize("name", ["cibhash", "dhd"])
def test_views_that_are_all_alike_are_refused(name):
    with refused(f"{name} compares views of an image"):
        made(name, horizontal_flip=False).fit(training_set())
    made(name, horizontal_flip=False, random_crop=2, epochs=1).fit(training_set())


def test_a_short_training_writes_no_checkpoint(tmp_path):
    file = tmp_path / "run" / "mark.npz"
    made("talr_ap", epochs=2).fit(training_set(checkpoint=file))
    assert not file.parent.exists()


@pytest.mark.parametrize("name", LEARNING)
@pytest.mark.thorough
def test_images_are_learned(name, device):
    count, epochs = {"adsh": (90, 15), "dhd": (60, 10), "dtsh": (60, 13)}.get(name, (45, 8))
    settings = {"epochs": epochs, "learning_rate": 0.005, "backbone_lr_multiplier": 1.0}
    settings |= {"distillation": 0, "weak_share": 0} if name == "dhd" else {}
    method = made(name, device=device.type, horizontal_flip=False, **settings).fit(training_set(count))
    unseen, labels = striped_images(60, 1)
    codes = method.encode(unseen)
    distances = (codes[:, None] != codes).sum(2)
    same = labels[:, None] == labels
    assert distances[same].mean() < distances[~same].mean() - 1


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.thorough
def test_every_method_trains_on_a_gpu_and_comes_back_from_its_file(name, gpu, tmp_path):
    method = made(name, device=gpu).fit(training_set(24))
    method.save(tmp_path)
    images, _ = striped_images(20, 1)
    assert np.array_equal(load_class(name).load(tmp_path).encode(images), method.encode(images))


def test_a_model_scores_the_same_on_a_gpu(gpu, tmp_path):
    method = made("talr_ap", device=gpu).fit(training_set(90))
    method.save(tmp_path)
    loaded = load_class("talr_ap").load(tmp_path)
    loaded.device, loaded.mixed_precision = "cpu", False
    images, _ = striped_images(200, 1)
    exact = loaded.raw_scores(images)
    for half, most in ((False, 1e-3), (True, 0.05)):
        method.mixed_precision = half
        assert np.abs(method.raw_scores(images) - exact).max() <= most * np.abs(exact).max()


@pytest.mark.parametrize("batch_norm", ["trained", "frozen"])
def test_a_step_of_a_network_is_the_same_on_a_gpu(batch_norm, gpu, monkeypatch):
    """One step of plain gradient descent in 32 bits, against the same on the CPU."""
    network = {"architecture": "efficientnet_lite0", "options": {"image_size": 32, "batch_norm": batch_norm}}
    plain = {"epochs": 1, "batch_size": 24, "learning_rate": 0.01, "momentum": 0.0, "weight_decay": 0.0}
    plain |= {"horizontal_flip": False, "mixed_precision": False}
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    made_on = [made("talr_ap", **plain, device=device) for device in ("cpu", gpu)]
    on_cpu, on_gpu = (method.fit(training_set(24, network)).state() for method in made_on)
    for name, expected in on_cpu.items():
        if expected.dtype == np.float32:
            assert np.abs(on_gpu[name] - expected).max() <= 2e-3 * max(1, np.abs(expected).max()), name


def test_the_network_learns_at_its_own_rate():
    """One step of plain gradient descent: with rate 0 the network stays, at twice the rate it moves twice."""
    plain = {"epochs": 1, "batch_size": 60, "momentum": 0.0, "weight_decay": 0.0, "horizontal_flip": False}
    moved, trained = {}, {}
    before = dict(made("talr_ap", epochs=0).fit(training_set()).network.named_parameters())
    for rate in (0.0, 0.1, 0.2):
        network = made("talr_ap", backbone_lr_multiplier=rate, **plain).fit(training_set()).network
        moved[rate] = {name: value.detach() - before[name] for name, value in network.named_parameters()}
        trained[rate] = {name for name, value in network.named_parameters() if value.grad is not None}
    for name in moved[0.0]:
        assert (name in trained[0.0]) != name.startswith("backbone.")
        if name.startswith("backbone."):
            assert torch.count_nonzero(moved[0.0][name]) == 0
            assert torch.allclose(moved[0.2][name], 2 * moved[0.1][name], rtol=1e-2, atol=1e-6)
        else:
            assert torch.equal(moved[0.0][name], moved[0.2][name])


def test_pretrained_weights_are_where_training_begins(tmp_path):
    import networks

    file = tmp_path / "small.npz"
    pretrained = networks.make("small", seed=5)
    np.savez(file, **{name: value.numpy() for name, value in pretrained.state_dict().items()})
    method = made("talr_ap", epochs=1, backbone_lr_multiplier=0.0, momentum=0.0)
    method.fit(training_set(weights=file))
    for name, value in pretrained.named_parameters():
        assert torch.equal(value, method.network.backbone.get_parameter(name))


def test_the_head_may_see_features_centred_and_scaled(tmp_path):
    few = training_set(60)
    images = torch.from_numpy(np.ascontiguousarray(few.items))
    plain = made("dpsh", epochs=0).fit(few)
    method = made("dpsh", epochs=0, standardise_features=True).fit(few)
    with torch.no_grad():
        before, seen = plain.network.features(images).double(), method.network.features(images).double()
    assert torch.allclose(seen.mean(dim=0), torch.zeros(seen.shape[1], dtype=torch.float64), atol=1e-6)
    assert seen.var(dim=0, correction=0).mean().item() == pytest.approx(1, abs=1e-5)
    # One number for all of them: what varies more goes on doing so.
    centred = before - before.mean(dim=0)
    assert torch.allclose(seen * centred.square().mean().sqrt(), centred, atol=1e-5)
    # What was subtracted stays as training goes on, and goes with the model.
    fitted = made("dpsh", learning_rate=1e-3, standardise_features=True).fit(few)
    assert torch.equal(fitted.network.offset, method.network.offset)
    assert not torch.equal(fitted.network.layer.weight, method.network.layer.weight)
    fitted.save(tmp_path)
    loaded = type(fitted).load(tmp_path)
    assert np.array_equal(loaded.encode(few.items), fitted.encode(few.items))
    assert torch.equal(loaded.network.offset, fitted.network.offset)
    assert {"offset", "scale"}.isdisjoint(plain.state())


def test_features_that_are_all_alike_are_centred_alone():
    network = made("dpsh", epochs=0, standardise_features=True).fit(training_set(60)).network
    network.standardise([torch.full((4, 32, 32, 3), 7, dtype=torch.uint8)] * 2)
    assert network.scale == 1.0 and torch.isfinite(network.offset).all()


@pytest.mark.parametrize("size", [7, 20, 60])
def test_batches_read_ahead_are_those_asked_for_in_order(size):
    images, _ = striped_images(60)
    batches = np.array_split(np.random.default_rng(0).permutation(60), range(size, 60, size))
    read = list(ItemReader(images, torch.device("cpu")).read(batches))
    assert len(read) == len(batches)
    for (indices, items), expected in zip(read, batches):
        assert np.array_equal(indices, expected)
        assert np.array_equal(items.numpy(), images[expected])
    assert list(ItemReader(images, torch.device("cpu")).read([])) == []


def test_an_error_of_reading_reaches_who_trains():
    class Broken:
        def __getitem__(self, part):
            if isinstance(part, slice):
                return np.zeros((1, 4, 4, 3), np.uint8)
            raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        list(ItemReader(Broken(), torch.device("cpu")).read([np.arange(2)]))


def test_mirroring_turns_about_half_of_the_images_left_to_right():
    images = torch.arange(400 * 2 * 3 * 3, dtype=torch.uint8).reshape(400, 2, 3, 3)
    turned = mirror(images, np.random.default_rng(0))
    flipped = np.array([torch.equal(new, old.flip(1)) for new, old in zip(turned, images)])
    kept = np.array([torch.equal(new, old) for new, old in zip(turned, images)])
    assert np.all(flipped | kept)
    assert abs(flipped.mean() - 0.5) < 0.1
