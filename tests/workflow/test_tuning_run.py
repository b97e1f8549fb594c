"""A tuning through the real Snakefile: its files, and a table that runs with what it chose."""

import json
from collections import Counter, defaultdict

import pytest
import yaml

from methods.base.catalogue import load_class
from workflow.stages.protocol_data import ProtocolData
from workflow.tuning.validation import validation_score

from forked import run as run_forked  # isort: skip

pytestmark = pytest.mark.thorough

TUNING = yaml.safe_load("""
protocol: tiny
methods: [lsh, talr_ap]
bits: [8]
trials: 4
rungs: [1, 2]
widen: 2
confirm: [{fit: 0.7, trials: 3}, {fit: 0.6, query: 0.3, trials: 2, partitions: 1}]
shares: {fit: 0.5, query: 0.2}
space: {learning_rate: {log_uniform: [0.01, 1.0]}, epochs: [1, 2, 3]}
trial_settings: {batch_size: 7}
candidates: {talr_ap: [{momentum: 0.3}, {epochs: 2}]}  # the second: as given
""")


@pytest.fixture
def tuned(laboratory, tiny):
    """The configuration of a laboratory in which the tuning was made; a stale choice stands in it."""
    tiny["tuning"] = {"mine": TUNING}
    tiny["methods"]["published"] = {"class": "talr_ap", "tuned": False}
    tiny["tables"]["tiny"] |= {"methods": ["lsh", "talr_ap", "published"], "seeds": [0]}
    tiny["tuned"] = {"tiny": {"talr_ap": {"search": {"trials": 2}, "momentum": 0.5}}}
    laboratory.made("results/tuning/mine.yaml", config=tiny)
    return tiny


def with_choices(laboratory, target, config):
    """Run a target with the tuning's choices as a second configuration file."""
    command = laboratory.command(target, config=config)
    command.insert(command.index("--"), str(laboratory.directory / "results/tuning/mine.yaml"))
    done = run_forked(command[1:], cwd=laboratory.place, env=laboratory.variables(), timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_a_trial_that_fails_is_named_with_its_settings(laboratory, tiny):
    method = laboratory.checkout / "methods" / "talr_ap.py"
    head, loss, tail = method.read_text().partition("    def objective(self, codes, affinity):\n")
    method.write_text(f"{head}{loss}        assert self.momentum != 0.3, 'no momentum'\n{tail}")
    tiny["tuning"] = {"mine": TUNING | {"methods": ["talr_ap"]}}
    line = laboratory.refused("results/tuning/mine.yaml", config=tiny)
    assert line.startswith(
        "error: mine/tiny/talr_ap/8 bits, {'momentum': 0.3}: AssertionError: no momentum ("
    )


def test_a_table_runs_with_what_a_tuning_chose(laboratory, tuned):
    trials = defaultdict(list)
    for row in laboratory.rows("tuning/mine.csv"):
        trials[row["method"], int(row["trial"])].append(row)
    assert len(trials["lsh", 0]) == 2 and ("lsh", 1) not in trials
    made = [trials["talr_ap", number] for number in range(len(trials) - 1)]
    origins = [rows[0]["origin"] for rows in made]
    assert origins[:5] == ["as given", "candidate", "drawn", "drawn", "drawn"] and len(made) <= 7
    assert all(origin.startswith("beyond ") for origin in origins[5:])
    assert json.loads(made[1][0]["settings"])["momentum"] == 0.3
    last = [[row for row in rows if row["fit"] == "0.6"] for rows in made]
    again = [[row for row in rows if row["fit"] == "0.7"] for rows in made]
    assert Counter(map(len, last)) == {1: 2, 0: len(made) - 2}
    assert Counter(map(len, again)) == {3: 3, 0: len(made) - 3}
    means = [float(rows[0]["score"]) if rows else -1 for rows in last]
    (chosen,) = (number for number, rows in enumerate(made) if rows[0]["chosen"] == "True")
    assert means[chosen] == max(means)
    (ends,) = {row["ends"] for row in made[chosen]}
    assert {row["ends"] for number, rows in enumerate(made) for row in rows if number != chosen} == {""}
    numbers = json.loads(made[chosen][0]["settings"])
    tried = [
        json.loads(rows[0]["settings"])["epochs"] for rows in made if rows[0]["origin"] == "beyond epochs"
    ]
    at_end = numbers["epochs"] >= max([3, *tried])  # an axis of whole numbers has an end at 1
    assert ("epochs" in ends.split()) == at_end and set(ends.split()) <= set(TUNING["space"])
    # The stale choice was no part of the start; drawn settings stand in the file of choices.
    settings = json.loads(made[chosen][0]["settings"])
    assert json.loads(made[0][0]["settings"]) == {"epochs": 2, "learning_rate": 0.1, "momentum": 0.9}
    entry = yaml.safe_load(laboratory.text("tuning/mine.yaml"))["tuned"]["tiny"]["talr_ap"]
    assert entry.pop("search")["tried"] == {8: len(made)}
    axes = set(TUNING["space"]) | (set() if chosen != 1 else {"momentum"})
    assert entry == ({} if chosen == 0 else {name: settings[name] for name in axes})

    with_choices(laboratory, "results/tiny.csv", tuned)
    methods = ("talr_ap", "published")
    of_runs = {method: laboratory.record(method)["hyperparameters"] for method in methods}
    assert of_runs["talr_ap"] == of_runs["published"] | settings
    assert of_runs["talr_ap"]["momentum"] == 0.9  # the stale choice is gone, not mixed
    counts = {row["method"]: row["trials"] for row in laboratory.rows("tiny.tidy.csv")}
    assert counts == {"lsh": "1", "talr_ap": str(len(made)), "published": "1"}
    searched = "4 trials, given candidates and up to 2 further, on 1, then 2 parts of the training set"
    searched += ", the best 3 again fitted on 70%, the best 2 again fitted on 60%"
    line = f"{searched}, with batch_size 7; default settings, no search, for published"
    title = laboratory.text("tiny.md").replace("TALR-AP", "talr_ap").replace("\\", "")
    assert f"Unequal hyper-parameter search: {line}." in title

    # The first trial is the settings as given but for those of all trials, which the runs do not have.
    given = {k: v for k, v in of_runs["published"].items() if k not in ("bits", "seed")}
    assert given["batch_size"] != 7
    folders = (laboratory.directory / "resources" / place for place in ("protocols/tiny", "datasets/tiny"))
    protocol = ProtocolData(*folders, {"affinity": tuned["protocols"]["tiny"]["affinity"]})
    talr = load_class("talr_ap")
    scores = {
        size: validation_score(talr, protocol, 8, given | {"batch_size": size}, "ap", TUNING["shares"], 0)
        for size in (7, given["batch_size"])
    }
    assert float(made[0][0]["score"]) == scores[7] != scores[given["batch_size"]]
    for row, more in ((again[chosen][2], {"fit": 0.7}), (last[chosen][0], {"fit": 0.6, "query": 0.3})):
        all_settings, part = given | json.loads(row["settings"]) | {"batch_size": 7}, int(row["partition"])
        score = validation_score(talr, protocol, 8, all_settings, "ap", TUNING["shares"] | more, part)
        assert float(row["score"]) == score

    before = laboratory.stamps("results/tuning/**/*")
    with_choices(laboratory, "results/tuning/mine.yaml", tuned)
    assert laboratory.stamps("results/tuning/**/*") == before  # searching again would change nothing

    # A longer search takes the scores of this one: the same to the hundredth of a second.
    tuned["tuning"]["mine"] = TUNING | {"trials": 5, "rungs": [1, 3]}
    with_choices(laboratory, "results/tuning/mine.yaml", tuned)
    longer = defaultdict(list)
    for row in laboratory.rows("tuning/mine.csv"):
        if row["method"] == "talr_ap":
            longer[row["origin"], row["settings"]].append((row["score"], row["seconds"]))
    assert len(longer) > TUNING["trials"] and max(map(len, longer.values())) == 3 + 3 + 1
    for rows in made:
        of_longer = longer.get((rows[0]["origin"], rows[0]["settings"]), [])
        for before, after in zip(rows, of_longer):
            if before["fit"] == "0.5":
                assert (before["score"], before["seconds"]) == after
    assert sum(rows[0]["settings"] in {settings for _, settings in longer} for rows in made) >= 5
