"""Make the paper's Table 1 at full size with stand-ins for what this machine lacks, and kill it on the way.

    python tests/workflow/rehearse_table1.py --images cifar10-jpeg.tar.xz --folder rehearsal

Not a test of every day: it takes hours on a CPU. The stand-ins are CIFAR-10's images, packed as the
published binary archive is (six files of 10,000 records; the JPEG files of --images show the same), and a
VGG-F with random weights in MatConvNet's layout. A server on this machine offers both over HTTP, and a
configuration puts its address and the checksums in place of the published ones. In a fresh clone of HEAD the
command `snakemake --cores 2 --configfile stand-ins.yaml -- results/table1.csv` then goes from download to
table, on CIFAR-10 alone and with few epochs: setting 1 with all methods, setting 2 with those of --setting-2.
As often as --kills says, all of its processes are killed at once, in turn while features are extracted and
while a network trains, and the command is given again.

Scores say nothing: the weights are random. What is printed says what Table 1 costs: seconds, of the clock
and of the processor, the largest memory and the disk of every stage. The folder is kept; given again, the
rehearsal goes on with what it holds, and adds to what was measured.
"""

import argparse
import contextlib
import functools
import hashlib
import http.server
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import psutil
import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

ARCHIVE, WEIGHTS = "cifar-10-binary.tar.gz", "imagenet-vgg-f.mat"
NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
DEEP = ("dpsh", "dtsh", "mihash", "talr_ap")
STAGES = ("extract_features", "train_and_encode")  # in which it is killed, in turn
SECONDS_BETWEEN_LOOKS = 0.5


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, required=True, help="tar with {train,test}/<class>/*.jpg")
    parser.add_argument("--folder", type=Path, required=True, help="where everything is made")
    parser.add_argument("--epochs", type=int, default=1, help="of deep trainings of setting 1 (default 1)")
    parser.add_argument("--bits", type=int, nargs="+", default=[12, 24, 32, 48], help="of setting 1")
    parser.add_argument(
        "--setting-2", nargs="+", choices=DEEP, default=[], help="methods that are trained on 50,000 images"
    )
    parser.add_argument("--setting-2-bits", type=int, nargs="+", default=[16])
    parser.add_argument("--setting-2-epochs", type=int, default=1)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--after", type=float, default=60, help="seconds of a stage before it is killed")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the command is ended too
    served, checkout = options.folder / "served", options.folder / "checkout"
    served.mkdir(parents=True, exist_ok=True)
    sources = [
        stand_in(served / ARCHIVE, functools.partial(write_archive, options.images)),
        stand_in(served / WEIGHTS, write_weights),
    ]
    if not checkout.exists():
        subprocess.run(["git", "clone", "--quiet", ROOT, checkout], check=True)
    with server(served) as address:
        config = options.folder.absolute() / "stand-ins.yaml"
        config.write_text(yaml.safe_dump(configuration(address, sources, options), sort_keys=False))
        return rehearse(checkout, config, options)


def stand_in(path, write):
    """What a configuration says of a file, which is written unless it is there."""
    if not path.exists():
        print(f"writing {path}", flush=True)
        temporary = path.with_name(f".{path.name}")
        write(temporary)
        temporary.rename(path)
    with path.open("rb") as file:
        return {
            "file": path.name,
            "bytes": path.stat().st_size,
            "sha256": hashlib.file_digest(file, "sha256").hexdigest(),
        }


def write_archive(images, path):
    """CIFAR-10's binary version of 60,000 JPEG files: the order of the training images is random."""
    from datasets.loaders import images as loader

    folder = path.with_suffix(".items")
    folder.mkdir(exist_ok=True)
    found = loader.load([images], folder, paths="*/{split}/{class}/{name}")
    if tuple(found.class_names) != NAMES or found.split_names != ["test", "train"]:
        raise SystemExit(f"{images}: must hold train/ and test/ with CIFAR-10's classes")
    pixels = np.load(folder / "items.npy", mmap_mode="r")
    # A record: the label, then the planes of red, green and blue.
    records = np.empty((len(pixels), 1 + 3 * 32 * 32), np.uint8)
    records[:, 0] = found.labels
    records[:, 1:] = pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1)
    (train,) = np.nonzero(found.given_split == found.split_names.index("train"))
    (test,) = np.nonzero(found.given_split == found.split_names.index("test"))
    order = np.random.default_rng(0).permutation(train)
    files = {f"data_batch_{number + 1}.bin": part for number, part in enumerate(np.split(order, 5))}
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        contents = {"batches.meta.txt": "\n".join(NAMES).encode()}
        files |= {"test_batch.bin": test}
        contents |= {name: records[rows].tobytes() for name, rows in files.items()}
        for name, content in contents.items():
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def write_weights(path):
    sys.path.insert(0, str(ROOT / "tests"))
    import matconvnet_files

    import networks

    matconvnet_files.save(networks.make("vgg_f", seed=0), path)


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def server(folder):
    """The address of a server of a folder's files."""
    offered = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=folder))
    threading.Thread(target=offered.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{offered.server_port}"
    finally:
        offered.shutdown()


def configuration(address, sources, options):
    """Stand-ins in place of the published files; of Table 1 the blocks that they serve."""
    archive, weights = ({**source, "urls": [f"{address}/{source['file']}"]} for source in sources)
    few = {"cifar10_s1": {"epochs": options.epochs}, "cifar10_s2": {"epochs": options.setting_2_epochs}}
    blocks = [{"protocol": "cifar10_s1", "metric": "ap", "bits": options.bits}]
    if options.setting_2:
        large = {"protocol": "cifar10_s2", "metric": "ap", "bits": options.setting_2_bits}
        blocks.append({**large, "methods": options.setting_2})
    return {
        "datasets": {"cifar10": {"sources": [archive]}},
        "networks": {"vgg_f": {"weights": weights}},
        "methods": {name: {"protocols": few} for name in DEEP},
        "tables": {"table1": {"blocks": blocks}},
    }


class Measured:
    """What the jobs of a rehearsal took so far, also of one that was interrupted: kept in a file."""

    def __init__(self, path):
        self.path = path
        held = json.loads(path.read_text()) if path.exists() else {}
        self.kills, self.total = held.get("kills", 0), held.get("total", 0.0)
        # Stage -> seconds of its jobs, processor seconds, resident bytes of its largest job.
        self.seconds, self.processor, self.memory = (
            defaultdict(float, held.get(name, {})) for name in ("seconds", "processor", "memory")
        )

    def save(self):
        self.path.write_text(json.dumps(vars(self) | {"path": None}))


def rehearse(checkout, config, options):
    """Run the command until it ends by itself; returns its exit status."""
    measured = Measured(options.folder / "measured.json")
    while True:
        stage = STAGES[measured.kills % len(STAGES)] if measured.kills < options.kills else None
        running = start(checkout, config, options.cores)
        begin, spent, used = time.monotonic(), defaultdict(float), {}
        killed = False
        try:
            while running.poll() is None and not killed:
                time.sleep(SECONDS_BETWEEN_LOOKS)
                for name, process, its_seconds, bytes_now in jobs(running.pid):
                    spent[name] += SECONDS_BETWEEN_LOOKS
                    used[name, process] = its_seconds
                    measured.memory[name] = max(measured.memory[name], bytes_now)
                killed = stage is not None and spent[stage] > options.after
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            measured.total += time.monotonic() - begin
            measured.kills += killed
            for name, its in spent.items():
                measured.seconds[name] += its
            for (name, _), its in used.items():
                measured.processor[name] += its
            measured.save()
        if not killed:
            report(checkout, measured)
            return running.returncode
        print(f"killed in {stage}, after {measured.total:.0f} s", flush=True)


def start(checkout, config, cores):
    """The command that a user gives, in a process group of its own."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "snakemake", "--cores", str(cores)),
            *("--configfile", str(config), "--", "results/table1.csv"),
        ],
        cwd=checkout,
        start_new_session=True,
        env={key: value for key, value in os.environ.items() if key != "TIEBENCH_RESOURCES"},
    )


def jobs(group):
    """(stage, process, processor seconds, resident bytes) of each job of a process group."""
    for process in psutil.process_iter(["cmdline"]):
        _, _, module = " ".join(process.info["cmdline"] or ()).partition(" -m workflow.scripts.")
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):  # it has ended
            if module and os.getpgid(process.pid) == group:
                spent = process.cpu_times()
                yield (
                    module.split()[0],
                    str(process.pid),
                    spent.user + spent.system,
                    process.memory_info().rss,
                )


def report(checkout, measured):
    print(f"\n{measured.kills} kills, {measured.total:.0f} s in all\n")
    print("| stage | seconds of its jobs | of the processor | largest job, MB |\n|---|---:|---:|---:|")
    for name in sorted(measured.seconds, key=measured.seconds.get, reverse=True):
        figures = (measured.seconds[name], measured.processor[name], measured.memory[name] / 1e6)
        print(f"| {name} | {' | '.join(f'{figure:.0f}' for figure in figures)} |")
    print("\n| folder | MB |\n|---|---:|")
    for name in ("resources/downloads", "resources/datasets", "resources/features", "results"):
        files = (path for path in (checkout / name).rglob("*") if path.is_file())
        print(f"| {name} | {sum(path.stat().st_size for path in files) / 1e6:.0f} |")


if __name__ == "__main__":
    sys.exit(main())
