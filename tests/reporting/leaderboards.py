"""Runs and published tables written by hand, for tests of the leaderboard."""

import json

import numpy as np

from reporting import frames
from reporting.printed import health, table_files
from reporting.records.read import table_results
from reporting.statistics import columns
from reporting.tables.model import Table

METRICS = ("ap_min", "ap", "ap_max", "ap@2", "wap")
COMMIT = "a" * 40


def make_run(folder, protocol, method, bits, seed, per_query, *, scores=(), training=(), **run):
    """A run as the workflow writes it. per_query: metric -> scores of the queries; scores: more of the parts
    of scores.json; training: lines of the log; run: more of run.json."""
    place = folder / "runs" / protocol / method / str(bits) / str(seed)
    place.mkdir(parents=True)
    np.savez(place / "per_query.npz", **per_query)
    queries = len(next(iter(per_query.values())))
    means = {name: float(np.mean(of)) for name, of in per_query.items()} | {"queries": queries, "bits": bits}
    health = {"ones": [0.25, 0.5, 0.75], "constant_bits": seed, "entropy": 3.0 + seed / 7}
    health |= {"collapsed": None, "correlation_max": None}
    made = {"metrics": means, "health": health, "curves": {}}
    made = {part: of | dict(scores).get(part, {}) for part, of in made.items()}
    (place / "scores.json").write_text(json.dumps(made | {"status": "done", "reason": None}))
    of_run = {"protocol": protocol, "method": method, "bits": bits, "seed": seed, "peak_memory_mb": 100.0}
    of_run |= {"seconds": 1.5, "seconds_by_part": {"fit": 1.25, "encode": 0.25}}
    of_run |= {"git_commit": COMMIT, "versions": {"numpy": "2"}, "device": "cpu", "threads": 1}
    of_run |= {"hyperparameters": {"bits": bits, "epochs": 3, "seed": seed}}
    of_run |= {"fingerprints": {"dataset": "d" * 64, "split": protocol}}
    (place / "run.json").write_text(json.dumps(of_run | run))
    (place / "training.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in training))


def refuse_runs(folder, pattern):
    """Make runs such as <protocol>/<method>/<bits>/<seed> refused ones."""
    for path in folder.glob(f"runs/{pattern}/scores.json"):
        refused = {"status": "refused", "reason": "no", "metrics": {}, "curves": {}}
        path.write_text(json.dumps(json.loads(path.read_text()) | refused))


def random_scores(generator, size):
    """Scores of METRICS per query, the ends of the range below and above."""
    found = {name: generator.random(size) for name in METRICS}
    found |= {"ap_min": found["ap"] / 2, "ap_max": (found["ap"] + 1) / 2}
    return found


def make_uncoded(folder, protocol, **metrics):
    (folder / "uncoded").mkdir(exist_ok=True)
    (folder / "uncoded" / f"{protocol}.json").write_text(json.dumps({"metrics": metrics}))


def publish_table(folder, table, uncoded=(), refused=(), published=()):
    """The files of a table in a folder of results, from its runs. published: what papers print."""
    settings = {"table": table, "refused": list(refused), "published": list(published), "claims": []}
    settings["uncoded"] = list(uncoded)
    asked = Table.from_json(settings)
    model = asked, table_results(asked, folder, also=["per_query"])
    of_runs = frames.tidy(*model), columns.comparisons(*model), [], health.frame(*model)
    files = table_files.table_files(asked, *of_runs)
    for ending, text in files.items():
        (folder / f"{table['name']}{ending}").write_text(text)
    (folder / f"{table['name']}.json").write_text(json.dumps(settings))
