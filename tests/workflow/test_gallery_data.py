"""The gallery: neighbours against sorting by hand, ties by counting, pictures, and what is drawn."""

import base64
import io
import json
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_hex
from PIL import Image

from reporting.page import embedding
from reporting.page import gallery as drawn
from reporting.tables.model import Table
from tiebench import figure_style
from workflow.stages import gallery_data

PROTOCOL = "small"


@pytest.fixture
def collected(tmp_path, monkeypatch):
    """60 images of 3 classes, 6 queries, 6 bits by two methods; (gallery, what it is made of)."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(5)
    items = random.integers(0, 256, (60, 70, 100, 3), dtype=np.uint8)
    labels = np.repeat(np.arange(3), 20)
    order = random.permutation(60)
    query, database = np.sort(order[:6]), np.sort(order[6:])
    dataset, protocol = tmp_path / "resources/datasets/images", tmp_path / f"resources/protocols/{PROTOCOL}"
    for folder in (dataset, protocol):
        folder.mkdir(parents=True)
    np.save(dataset / "items.npy", items)
    np.save(dataset / "labels.npy", labels)
    (dataset / "dataset.json").write_text(json.dumps({"fingerprint": "x"}))
    np.savez(protocol / "split.npz", query=query, database=database, training=database[:10])
    (protocol / "split.json").write_text(json.dumps({"fingerprint": "y"}))
    (protocol / "affinity.json").write_text(json.dumps({"thresholds": None}))
    codes = {method: random.integers(0, 2, (60, 6), dtype=np.uint8) for method in ("lsh", "itq")}
    parts = {method: (bits[query], bits[database]) for method, bits in codes.items()}
    parts["refused"] = (np.zeros((0, 6), np.uint8),) * 2
    for method, two in parts.items():
        folder = tmp_path / f"results/runs/{PROTOCOL}/{method}/6/0"
        folder.mkdir(parents=True)
        packed = dict(zip(("query", "database"), (np.packbits(part, axis=1) for part in two)))
        np.savez(folder / "codes.npz", **packed, bits=6)
    cells = [(PROTOCOL, method, 6) for method in parts]
    settings = {PROTOCOL: {"affinity": {"kind": "class"}, "picture": None}}
    found = gallery_data.collect(cells, {PROTOCOL: str(dataset)}, settings, seed=0, queries=3)
    return found, (items, labels, query, database, codes)


def test_neighbours_are_the_nearest_in_the_order_of_the_database(collected):
    found, (items, labels, query, database, codes) = collected
    chosen = query[[0, 2, 5]]  # evenly over six: 0, 2.5, 5
    pictures = found[f"{PROTOCOL}/pictures"]
    assert pictures.shape[1:] == (34, 48, 3)
    for method, bits in codes.items():
        names = ("neighbours", "distances", "relevant", "tied")
        part = {name: found[f"{PROTOCOL}/{method}/{name}"] for name in names}
        for row, item in enumerate(chosen):
            far = [int((bits[item] != bits[other]).sum()) for other in database]
            nearest = sorted(range(len(database)), key=lambda place, far=far: (far[place], place))[:12]
            assert part["distances"][row].tolist() == [far[place] for place in nearest]
            assert part["tied"][row].tolist() == [far.count(far[place]) for place in nearest]
            relevant = [labels[database[place]] == labels[item] for place in nearest]
            assert part["relevant"][row].tolist() == relevant
            for rank, place in enumerate(nearest):
                shown = pictures[part["neighbours"][row, rank]].astype(float)
                # A thumbnail keeps the mean colour of its image, which tells random images apart.
                assert np.abs(shown.mean((0, 1)) - items[database[place]].mean((0, 1))).max() < 1.5
    assert found[f"{PROTOCOL}/run"].tolist() == [6, 0]


def test_vectors_of_pixels_become_pictures():
    items = np.arange(24, dtype=np.float32).reshape(2, 12)
    grey = gallery_data._thumbnails(items, [1, 0], [3, 4])
    assert grey.shape == (2, 3, 4, 3) and grey.dtype == np.uint8
    assert (grey == grey[..., :1]).all()
    assert grey[1, 0, 0, 0] == 0 and grey[0, 2, 3, 0] == 255
    assert grey[1, 1, 0, 0] == round(255 * 4 / 23)
    coloured = gallery_data._thumbnails(items, [0], [2, 2, 3])
    assert coloured[0, 1, 1].tolist() == [round(255 * v / 11) for v in (9, 10, 11)]
    with pytest.raises(ValueError, match="not the 12 values"):
        gallery_data._thumbnails(items, [0], [3, 3])


def table(**changes):
    plain = {"name": "t", "title": "", "seeds": [0], "methods": ["lsh", "itq", "mihash"]}
    blocks = [{"protocol": PROTOCOL, "metric": "ap", "bits": [6, 12]}]
    return Table.from_json({"table": plain | {"blocks": blocks} | changes})


def test_ties_are_boxed_and_every_item_is_marked_once(collected):
    found, _ = collected
    figure = drawn.draw(table(), found)
    (axes,) = figure.axes
    texts = [text.get_text() for text in axes.texts]
    assert texts.count("query") == 3 and texts.count("lsh") == 3 and "mihash" not in texts
    for method in ("lsh", "itq"):
        for query in range(3):
            distances = found[f"{PROTOCOL}/{method}/distances"][query]
            boxes = {p.get_gid() for p in axes.patches if f"-{query}-{method}-" in (p.get_gid() or "")}
            assert boxes == {f"tie-{PROTOCOL}-{query}-{method}-{d}" for d in set(distances.tolist())}
            relevant = found[f"{PROTOCOL}/{method}/relevant"][query]
            frames = {collection.get_gid(): collection for collection in axes.collections}
            for kind, count, colour in (
                ("right", relevant.sum(), drawn.RIGHT),
                ("wrong", (~relevant).sum(), drawn.WRONG),
            ):
                collection = frames.get(f"{kind}-{PROTOCOL}-{query}-{method}")
                assert (0 if collection is None else len(collection.get_paths())) == count
                if count:
                    assert to_hex(collection.get_edgecolor()[0]).upper() == colour
            first = int(np.count_nonzero(distances == distances[0]))
            words = f"d = {distances[0]}: {first} of {found[f'{PROTOCOL}/{method}/tied'][query][0]}"
            assert words in texts or first < 3
    # Boxes lie behind the pictures, and all pictures are there.
    assert max(p.get_zorder() for p in axes.patches) < min(i.get_zorder() for i in axes.images)
    assert len(axes.images) == 3 * (1 + 2 * 12)
    assert figure_style.render(figure, "svg") == figure_style.render(drawn.draw(table(), found), "svg")


def test_a_refused_run_has_no_rows_and_a_table_of_refused_runs_says_so(collected):
    found, _ = collected
    assert not [name for name in found if "/refused/" in name]
    three, two = (drawn.draw(table(**more), found) for more in ({"methods": ("lsh", "itq", "refused")}, {}))
    assert figure_style.render(three, "svg") == figure_style.render(two, "svg")
    alone = {name: value for name, value in found.items() if name.count("/") == 1}
    (line,) = drawn.draw(table(methods=("refused",)), alone).texts
    assert line.get_text() == "No run of these methods has codes to show."


def test_photographs_are_compressed_for_a_page_and_drawings_are_not(collected):
    figure = drawn.draw(table(), collected[0])  # its pictures are noise
    plain = figure_style.render(figure, "svg").decode()
    smallest = embedding.smallest_svg(plain, figure_style.render(figure, "png"))
    assert len(smallest) < 0.6 * len(plain)
    root = ElementTree.fromstring(smallest)
    (image,) = root
    kind, content = image.get("href").split(",")
    assert kind == "data:image/webp;base64"
    with (
        Image.open(io.BytesIO(base64.b64decode(content))) as shown,
        Image.open(io.BytesIO(figure_style.render(figure, "png"))) as whole,
    ):
        assert shown.size == whole.size
        assert root.get("viewBox") == f"0 0 {whole.width} {whole.height}"
        apart = np.abs(np.asarray(shown.convert("RGB"), int) - np.asarray(whole.convert("RGB"), int))
    assert np.median(apart) < 4
    for axes in figure.axes:
        for picture in list(axes.images):
            picture.remove()
    plain = figure_style.render(figure, "svg").decode()
    assert embedding.smallest_svg(plain, figure_style.render(figure, "png")) == plain
