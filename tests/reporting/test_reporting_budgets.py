"""Budgets of hyper-parameters in tables: trials of each cell, and a line where rows had unequal budgets."""

import pandas as pd
import pytest
from leaderboards import make_run, publish_table
from models import model_of, record, table_of

from reporting import frames, leaderboard
from reporting.leaderboard.publishing import publish
from reporting.printed.cells import cells
from reporting.printed.latex import to_latex
from reporting.printed.legend import budget_sentence, in_words
from reporting.printed.markdown import to_markdown

STYLES = {name: {"title": name.upper()} for name in ("lsh", "a", "b", "c", "d", "e", "f")}
BLOCKS = [{"protocol": "p", "metric": "ap", "bits": [8, 16]}, {"protocol": "q", "metric": "ap", "bits": [8]}]
RULE, LONGER = "8 trials and up to 4 more, on 3/8 parts", "24 trials, on 1 part"
GIVEN, RULED, LONG = in_words("as given"), in_words(RULE), in_words(LONGER)


def table(*tuned, methods=tuple(STYLES), blocks=BLOCKS):
    """A table in which cells (protocol, method, bits, trials, budget) were tuned."""
    keys = ("protocol", "method", "bits", "trials", "budget")
    budgets = [dict(zip(keys, cell)) for cell in tuned]
    lsh = [("p", 8), ("p", 16), ("q", 8)]
    budgets += [dict(zip(keys, (p, "lsh", bits, 1, "nothing to choose"))) for p, bits in lsh]
    plain = {"name": "t", "seeds": [0], "styles": STYLES}
    return plain | {"methods": list(methods), "blocks": blocks, "budgets": budgets}


def tidy(made):
    records = [
        record(method, bits, 0, {"ap": 0.5}, block["protocol"])
        for block in made["blocks"]
        for method in made["methods"]
        for bits in block["bits"]
    ]
    return frames.tidy(*model_of(made, records))


def sentence(*tuned, **changes):
    made = table(*tuned, **changes)
    return budget_sentence(tidy(made), table_of(made))


def all_of(protocol, budget, methods="abcdef", trials=8):
    lengths = (8, 16) if protocol == "p" else (8,)
    return [(protocol, method, bits, trials, budget) for method in methods for bits in lengths]


def test_a_cell_has_the_trials_of_its_search_or_one():
    made = table(("p", "a", 8, 9, RULE), ("p", "a", 16, 12, RULE))
    frame = tidy(made)
    of = {(row.protocol, row.method, row.bits): (row.trials, row.budget) for row in frame.itertuples()}
    assert of["p", "a", 8] == (9, RULE) and of["p", "a", 16] == (12, RULE)
    assert of["q", "a", 8] == of["p", "b", 8] == (1, "as given")
    assert of["p", "lsh", 8] == (1, "nothing to choose")
    again = frames.from_csv(frames.to_csv(frame))
    pd.testing.assert_frame_equal(again, frame)
    made = table(methods=("lsh",))
    row = frames.tidy(*model_of(made, [], (), {"p": {"ap": 0.25}})).query("method == 'uncoded'").iloc[0]
    assert (row["trials"], row["budget"]) == (0, "")


def test_equal_budgets_need_no_word_whatever_was_tried():
    assert sentence() == ""
    assert sentence(*all_of("p", RULE)) == ""  # q: all as given
    assert sentence(*all_of("p", RULE, trials=12)[:4], *all_of("p", RULE)[4:]) == ""
    assert sentence(*all_of("p", RULE), *all_of("q", LONGER)) == ""  # rows of a column are compared


MOST = all_of("p", RULE, "abcde")
MIXED = [("p", "f", 8, 8, RULE), ("p", "f", 16, 24, LONGER)]
LAST = all_of("p", LONGER, "f") + all_of("q", LONGER, "f")


@pytest.mark.parametrize(
    ("tuned", "expected"),
    [
        (all_of("p", RULE, "ab"), f"{GIVEN}; {RULED}, for A on p, B on p"),
        (MOST + all_of("p", LONGER, "f"), f"{RULED}; {LONG}, for F on p"),
        (MOST + MIXED, f"{RULED}; {LONG}, for F on p (16 bits)"),
        (MOST + all_of("q", RULE, "abcde") + LAST, f"{RULED}; {LONG}, for F"),
    ],
)
def test_the_budget_of_most_rows_comes_first_and_the_others_are_named(tuned, expected):
    assert sentence(*tuned) == f"Unequal hyper-parameter search: {expected}."


def test_a_budget_that_has_less_or_more_of_the_same_says_only_that():
    again = f"{RULE}, the best 6 again on 80%"
    tuned = all_of("p", again, "abc") + all_of("p", RULE, "de")
    tuned += all_of("p", f"{again}, the best 2 again on 90%, 9 s", "f")
    found = sentence(*tuned)
    assert found.startswith(f"Unequal hyper-parameter search: {in_words(again)}; ")
    assert "; without the best 6 again fitted on 80%, for D on p, E on p; " in found
    assert found.endswith("; also at most 9 s each, the best 2 again fitted on 90%, for F on p.")


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("as given", "default settings, no search"),
        (
            "8 trials, the given ones and up to 2 more, on 3/8 parts, 30 s",
            "8 trials, given candidates and up to 2 further, at most 30 s each, "
            "on 3, then 8 parts of the training set",
        ),
        (
            "24 trials, on 1/3 parts, the best 6 again on 80%, the best 2 again on 90%, with k 9, "
            "trees x depth up to 80, a up to 2",
            "24 trials, on 1, then 3 parts of the training set, the best 6 again fitted on 80%, "
            "the best 2 again fitted on 90%, trees x depth up to 80, a up to 2, with k 9",
        ),
        ("a rule of another program", "a rule of another program"),
    ],
)
def test_a_budget_in_words(budget, words):
    assert in_words(budget) == words


def test_a_row_without_a_score_is_not_compared():
    made = table(*all_of("p", RULE, "a"), methods=("a", "b"), blocks=BLOCKS[:1])
    frame = tidy(made)
    frame.loc[frame["method"] == "b", "mean"] = float("nan")
    assert budget_sentence(frame, table_of(made)) == ""


def test_the_line_is_under_every_printed_form():
    made = table(*all_of("p", RULE, "a"))
    line = f"Unequal hyper-parameter search: {GIVEN}; {RULED}, for A on p."
    printed = cells(tidy(made), table_of(made))
    assert line in to_markdown(printed) and line in to_latex(printed)


def test_the_leaderboard_keeps_trials_and_budgets(tmp_path):
    made = table(*all_of("p", RULE, "a", trials=11), methods=("lsh", "a", "b"), blocks=BLOCKS[:1])
    for method in made["methods"]:
        for bits in (8, 16):
            make_run(tmp_path, "p", method, bits, 0, {"ap": [0.5, 0.25], "ndcg": [0.5, 0.75]})
    publish_table(tmp_path, made)
    publish(["t"], tmp_path, tmp_path / "leaderboard", say=lambda line: None)
    board = leaderboard.read("p", tmp_path / "leaderboard")
    of = {(cell["metric"], cell["method"]): (cell["trials"], cell["budget"]) for cell in board.cells}
    assert of["ap", "a"] == of["ndcg", "a"] == ("11", RULE)
    assert of["ap", "b"] == ("1", "as given") and of["ap", "lsh"] == ("1", "nothing to choose")
    # A table that takes its rows from there.
    filled = frames.tidy(*model_of({**made, "budgets": []}, board.measured))
    found = budget_sentence(filled, table_of(made))
    assert found == f"Unequal hyper-parameter search: {RULED}; {GIVEN}, for B."
