"""Claims of a paper, judged on the leaderboard's runs, as a Markdown table of a page."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from reporting.claims import verdicts
from reporting.claims.tested import OUTCOMES
from reporting.leaderboard import TIDY
from reporting.leaderboard.boards import Boards
from reporting.leaderboard.settings import check_keys, listed, paragraph, read_yaml
from reporting.printed.markdown import escape_markdown, markdown_table

KEYS = {
    "claims": str,
    "protocol": (str, list),
    "each": list,
    "metric": str,
    "bits": (int, list),
    "methods": list,
    "without": list,
}
# What an entry of `each` may say.
PART = ("protocol", "metric", "bits", "methods", "without")
ELSEWHERE = "The paper states its claims for other data."
COUNTS = (
    "In brackets: comparisons that are significant for the claim, against it, not significant, and with too "
    "few runs. Ranges are exact: none of theirs is tested."
)


def render(settings: Mapping, folder: Path, boards: Boards) -> str:
    """The verdict on each claim of a file that the leaderboard's runs of some protocols can judge.

    settings: of the marker, see generated-parts.md. folder: of the page, to which the file of claims is
    relative. Raises ValueError, one line with the nearest name, for settings that are unknown or do not fit,
    and where no claim is left.
    """
    check_keys(settings, KEYS, "a table of claims")
    if ("protocol" in settings) == ("each" in settings):
        raise ValueError("a table of claims needs one of the keys protocol and each")
    files = _claims(folder / settings["claims"])
    parts = [settings]
    if "each" in settings:
        parts = [one if isinstance(one, Mapping) else {"protocol": one} for one in settings["each"]]
        for part in parts:
            check_keys(part, {key: KEYS[key] for key in PART}, "a column of a table of claims")
            if "protocol" not in part:
                raise ValueError("a column of a table of claims needs the key protocol")
    protocols = [name for part in parts for name in listed(part["protocol"])]
    judged, titles = [], []
    for part in parts:
        table, results = boards.asked(part, ["per_query"])
        found = verdicts.judge(files, replace(table, titles=boards.titles), results)
        judged.append({(one["source"], one["id"]): one for one in found})
        titles.append(table.protocol_title(listed(part["protocol"])[0]))
    claims = [
        (file["source"], claim["id"])
        for file in files
        for claim in file["claims"]
        if any((file["source"], claim["id"]) in found for found in judged)
    ]
    if not claims:
        names = ", ".join(protocols)
        raise ValueError(f"no claim of {settings['claims']} is about these rows of {names}")
    side_by_side = "each" in settings
    heads = titles if side_by_side else ["Verdict", "Comparisons"]
    rows = []
    for claim in claims:
        of = [found.get(claim) for found in judged]
        one = next(filter(None, of))
        claimed, of_paper = (escape_markdown(" ".join(one[key].split())) for key in ("claim", "of"))
        whole = [one["verdict"], escape_markdown(one["summary"])]
        cells = [_brief(here) for here in of] if side_by_side else whole
        rows.append([f"{claimed} *{of_paper}*", *cells])
    words = [f"What [verdicts]({boards.link(folder, 'verdicts.md')}) mean."]
    words += [COUNTS] if side_by_side else []
    if all(one["elsewhere"] for found in judged for one in found.values()):
        words.append(ELSEWHERE)
    links = (f"[{name}]({boards.link(folder)}{name}{TIDY})" for name in protocols)
    words.append(f"Data: {', '.join(links)}.")
    return f"{markdown_table(['Claim', *heads], rows, 0)}\n\n{paragraph(' '.join(words))}"


def _brief(one: Mapping | None) -> str:
    """A verdict with the numbers of its comparisons by outcome."""
    if one is None:
        return "–"
    outcomes = [figure["outcome"] for figure in one["figures"]]
    return f"{one['verdict']} ({'/'.join(str(outcomes.count(kind)) for kind in OUTCOMES)})"


def _claims(path: Path) -> list[dict]:
    """Contents of files of claims.

    path: config/claims/<name>.yaml, or a configuration, whose key `claims` holds several by name.
    """
    file = read_yaml(path)
    held = file.get("claims") if isinstance(file, dict) else None
    files = list(held.values()) if isinstance(held, dict) else [file]
    if not held or not all(isinstance(one, dict) and isinstance(one.get("claims"), list) for one in files):
        raise ValueError(f"claims: {path} holds no claims, as config/claims/he2018.yaml does")
    return files
