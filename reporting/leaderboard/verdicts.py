"""Claims of a paper, judged on the leaderboard's runs, as a Markdown table of a page."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from reporting.claims import verdicts
from reporting.leaderboard import TIDY
from reporting.leaderboard.boards import Boards, as_table, results_of
from reporting.leaderboard.columns import as_bits, check_keys, listed
from reporting.leaderboard.per_query import with_scores
from reporting.leaderboard.tables import WIDTH
from reporting.printed.markdown import escape_markdown
from reporting.tables.runs import Run
from tiebench.messages import did_you_mean

KEYS = {
    "claims": str,
    "only": list,
    "protocol": (str, list),
    "metric": str,
    "bits": (int, list),
    "methods": list,
    "without": list,
    "instead": dict,
}
LEGEND = (
    "Comparisons are decided over queries and runs together, with Holm's correction over those of a claim; "
    "with fewer than five runs of a method that varies nothing is decided; ranges over tie orders are exact."
)
ELSEWHERE = "All claims were stated for other data than these."


def render(settings: Mapping, folder: Path, boards: Boards, link: str = "") -> str:
    """The verdict on each claim of a file that the leaderboard's runs of some protocols can judge.

    settings: of the marker, see leaderboard/README.md. folder: of the page, to which the file of claims is
    relative. link: from the page to the folder of the boards. Raises ValueError, one line with the nearest
    name, for settings that are unknown or do not fit, and where no claim is left.
    """
    check_keys(settings, KEYS, "a table of claims")
    if "protocol" not in settings:
        raise ValueError("a table of claims needs the key protocol")
    files = _claims(folder / settings["claims"], settings.get("only"))
    metric, blocks, runs = settings.get("metric", "ap"), [], []
    instead = settings.get("instead") or {}
    for protocol in listed(settings["protocol"]):
        bits = as_bits(settings.get("bits") or boards[protocol].bits)
        boards.check(protocol, metric, bits)
        blocks.append({"protocol": protocol, "metric": metric, "bits": bits})
        runs += _instead(with_scores(boards[protocol], boards.folder), instead)
    used = [boards[block["protocol"]] for block in blocks]
    without = [*settings.get("without", ()), *instead.values()]
    as_table(used, blocks, list(instead))  # names of rows that do not exist are an error
    table = as_table(used, blocks, settings.get("methods"), without)
    judged = verdicts.judge(files, table, results_of(table, used, runs))
    if not judged:
        names = ", ".join(listed(settings["protocol"]))
        raise ValueError(f"no claim of {settings['claims']} is about these rows of {names}")
    lines = ["| Claim | Verdict | Comparisons |", "|:---|:---|:---|"]
    for one in judged:
        said = {key: escape_markdown(one[key]) for key in ("claim", "of", "summary")}
        lines.append(f"| {said['claim']} *{said['of']}* | {one['verdict']} | {said['summary']} |")
    words = [LEGEND, ELSEWHERE] if all(one["elsewhere"] for one in judged) else [LEGEND]
    links = (f"[{board.protocol}]({link}{board.protocol}{TIDY})" for board in used)
    words.append(f"Data: {', '.join(links)}.")
    text = textwrap.fill(" ".join(words), WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join([*lines, "", text])


def _instead(runs: Sequence[Run], instead: Mapping[str, str]) -> list[Run]:
    """Runs with those of other rows in place of a method's, wherever these rows have runs.

    instead: method -> the row of the same method that is better justified, such as one without a cap of time.
    """
    cells = {run.cell for run in runs}
    names = {name: method for method, name in instead.items()}
    return [
        replace(run, method=names.get(run.method, run.method))
        for run in runs
        if (run.protocol, instead.get(run.method), run.bits) not in cells
    ]


def _claims(path: Path, only: list | None) -> list[dict]:
    """Contents of files of claims, with those of the claims that `only` names, all for None.

    path: config/claims/<name>.yaml, or a configuration, whose key `claims` holds several by name.
    """
    try:
        file = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ValueError(f"claims: {path} cannot be read: {' '.join(str(error).split())}") from error
    held = file.get("claims") if isinstance(file, dict) else None
    files = list(held.values()) if isinstance(held, dict) else [file]
    if not held or not all(isinstance(one, dict) and isinstance(one.get("claims"), list) for one in files):
        raise ValueError(f"claims: {path} holds no claims, as config/claims/he2018.yaml does")
    known = [claim["id"] for one in files for claim in one["claims"]]
    for name in only or ():
        if name not in known:
            raise ValueError(f"{path} has no claim {name!r}{did_you_mean(name, known)}")
    return [
        one | {"claims": [claim for claim in one["claims"] if only is None or claim["id"] in only]}
        for one in files
    ]
