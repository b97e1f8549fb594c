"""Claims judged on the leaderboard: the verdicts are those of a table with the runs themselves."""

import numpy as np
import pytest
import yaml
from leaderboards import make_run, publish_table, random_scores
from models import block, model_of, table_of

from reporting.claims import verdicts as claims
from reporting.leaderboard import verdicts
from reporting.leaderboard.boards import Boards
from reporting.leaderboard.publishing import publish
from reporting.records.read import table_runs
from tests.tiebench.refusals import refused

LEVEL_OF = {"lsh": 0.2, "itq": 0.4, "talr": 0.401, "onehot": 0.1}
STYLES = {
    "lsh": {"title": "LSH", "family": "unsupervised"},
    "itq": {"title": "ITQ", "family": "unsupervised"},
    "talr": {"title": "TALR|AP", "family": "listwise"},
    "onehot": {"title": "One-hot", "family": "bound"},
}
TABLE = {"name": "t", "methods": list(STYLES), "seeds": [0, 1, 2, 3, 4, 5], "fewer_seeds": {"lsh": 5}}
TABLE |= {"styles": STYLES, "families": {name: style["family"] for name, style in STYLES.items()}}
TABLE["blocks"] = [block("p", bits=[8, 16])]
PAIR = {"kind": "above", "methods": ["itq"], "others": ["lsh"]}
CLAIMS = [
    {"id": "best", "claim": "TALR is best.", "stated_for": ["p"], "kind": "best", "method": "talr"},
    {"id": "above", "claim": "ITQ is above LSH."} | PAIR,
    {"id": "reverse", "claim": "LSH is above ITQ."} | PAIR | {"methods": ["lsh"], "others": ["itq"]},
    {"id": "ranges", "claim": "Ranges shrink.", "kind": "tie_ranges_shrink"},
    {"id": "absent", "claim": "A is above B."} | PAIR | {"methods": ["a"], "others": ["b"]},
]
CLAIMS = [{"of": "Table 1", "stated_for": ["x"]} | claim for claim in CLAIMS]
CLAIMS = {"source": "somebody", "claims": CLAIMS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A leaderboard of scores of 60 queries, and a file of claims beside it; tests add files."""
    tmp_path = tmp_path_factory.mktemp("verdicts")
    generator = np.random.default_rng(3)
    hard = generator.normal(scale=0.05, size=60)
    for method, level in LEVEL_OF.items():
        for bits in (8, 16):
            for seed in range(5 if method == "lsh" else 6):
                ap = np.clip(level + hard + 0.01 * generator.normal(size=60), 0, 1)
                width = 0.1 if bits == 8 else 0.05
                scores = random_scores(generator, 60) | {"ap": ap, "ap_min": ap - width, "ap_max": ap + width}
                make_run(tmp_path, "p", method, bits, seed, scores)
    publish_table(tmp_path, TABLE)
    publish(["t"], tmp_path, tmp_path / "leaderboard")
    (tmp_path / "claims.yaml").write_text(yaml.safe_dump(CLAIMS))
    return tmp_path


def choose(folder, *ids):
    """Write some.yaml, of these claims alone."""
    kept = [claim for claim in CLAIMS["claims"] if claim["id"] in ids]
    (folder / "some.yaml").write_text(yaml.safe_dump(CLAIMS | {"claims": kept}))


def rendered(folder, settings):
    return verdicts.render(yaml.safe_load(settings), folder, Boards(folder / "leaderboard"))


def test_methods_can_be_left_out_and_the_metric_be_another(folder):
    choose(folder, "best")
    asked = "claims: some.yaml, protocol: p, bits: 16"
    whole, few, other = (
        rendered(folder, f"{{{asked}{more}}}") for more in ("", ", without: [itq]", ", metric: ap@2")
    )
    assert "2 comparisons" in whole and "The one comparison" in few
    assert other.splitlines()[2] != whole.splitlines()[2]


def test_the_verdicts_are_those_of_a_table_with_the_runs(folder):
    runs = table_runs(table_of(TABLE), folder / "runs", also=["per_query"])
    judged = claims.judge([CLAIMS], *model_of(TABLE, runs))
    assert {one["id"]: one["verdict"] for one in judged} == {
        "best": "undecided", "above": "reproduced", "reverse": "not reproduced", "ranges": "reproduced"
    }  # fmt: skip
    lines = rendered(folder, "{claims: claims.yaml, protocol: p}").splitlines()
    assert lines[:2] == ["| Claim | Verdict | Comparisons |", "|:---|:---|:---|"]
    assert lines[2:6] == [
        f"| {one['claim']} *{one['of']}* | {one['verdict']} | {one['summary']} |" for one in judged
    ]
    assert "tested over runs alone" not in "".join(lines) and "without some" not in "".join(lines)
    assert " ".join(lines[7:]) == "What [verdicts](docs/verdicts.md) mean. Data: [p](leaderboard/p.tidy.csv)."


def test_some_claims_some_methods_some_lengths(folder):
    choose(folder, "best", "ranges")
    settings = "{claims: some.yaml, protocol: [p], methods: [talr, lsh], bits: 16}"
    lines = rendered(folder, settings).splitlines()
    comparison = "The one comparison is significant for the claim."
    assert lines[2:4] == [f"| TALR is best. *Table 1* | reproduced | {comparison} |", ""]
    choose(folder, "above")
    elsewhere = rendered(folder, "{claims: some.yaml, protocol: p}")
    assert verdicts.ELSEWHERE in " ".join(elsewhere.split())


def test_a_column_a_protocol(folder):
    """Side by side: the verdict of each column is that of its own table, with its comparisons counted."""
    settings = "{claims: claims.yaml, each: [p, {protocol: p, methods: [itq, lsh]}]}"
    lines = rendered(folder, settings).splitlines()
    both = [rendered(folder, one).splitlines() for one in (
        "{claims: claims.yaml, protocol: p}", "{claims: claims.yaml, protocol: p, methods: [itq, lsh]}"
    )]  # fmt: skip
    for place, table in enumerate(both):
        for row in (line.split(" | ") for line in table[2:6] if line.startswith("| ")):
            (found,) = [line.split(" | ") for line in lines if line.startswith(row[0])]
            assert found[1 + place].split(" (")[0] == row[1]
    (reverse,) = [line for line in lines if "LSH is above" in line]
    assert "not reproduced (0/2/0/0) | not reproduced (0/2/0/0) |" in reverse
    assert lines[0].startswith("| Claim | ") and lines[0].count("|") == 4


def test_claims_of_a_configuration(folder):
    (folder / "mine.yaml").write_text(yaml.safe_dump({"claims": {"somebody": CLAIMS}, "tables": {}}))
    assert rendered(folder, "{claims: mine.yaml, protocol: p}") == rendered(
        folder, "{claims: claims.yaml, protocol: p}"
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("{claims: claims.yaml}", "needs one of the keys protocol and each"),
        ("{claims: claims.yaml, protocol: q}", "no protocol 'q'"),
        ("{claims: claims.yaml, protocol: p, bits: 12}", "no codes of 12 bits"),
        ("{claims: claims.yaml, protocol: p, columns: []}", "unknown key 'columns' of a table of claims"),
        ("{claims: some.yaml, protocol: p}", "no claim of some.yaml is about"),
        ("{claims: nowhere.yaml, protocol: p}", "nowhere.yaml: No such file"),
        ("{claims: list.yaml, protocol: p}", "list.yaml holds no claims"),
    ],
)
def test_mistakes(folder, settings, words):
    (folder / "list.yaml").write_text("[1, 2]")
    choose(folder, "absent")
    with refused(words):
        rendered(folder, settings)
