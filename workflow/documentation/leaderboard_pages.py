"""Pages of the leaderboards: an index, and one page a protocol.

A protocol's page is what a page of results is, see `reporting.page`, in the theme of the site, and compares
two methods. Everything is made from leaderboard/, and all scores can be read without a script.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from reporting.leaderboard import RUNS
from reporting.page.document import content
from reporting.page.templates import environment
from tiebench.leaderboards import PROVENANCE, TIDY
from tiebench.paired import ENOUGH_RUNS, TOO_FEW
from workflow.documentation import comparison
from workflow.documentation.api_pages import toctree
from workflow.documentation.leaderboard_models import FOLDER, Protocol

INDEX = f"{FOLDER}/index.md"
# How lists of pages describe the index.
DESCRIPTION = "all methods of each protocol: tables to sort, charts, two methods compared"
LEAD = (
    "What was measured under each protocol, from the files of the repository. Scores of different "
    "protocols must not be compared with each other: [protocols](../protocols.md) describes what each "
    "asks, [results](../results.md) what the numbers can and cannot say. To see codes of your own "
    "beside these methods, [compare your codes](../compare-your-codes.md)."
)
_TEMPLATES = environment([Path(__file__).parent / "templates"])


def pages(protocols: Sequence[Protocol], method_pages: Mapping[str, str]) -> dict[str, str]:
    """Path among the site's sources -> text, of every page.

    method_pages: method or variant -> its page, path among the sources.
    """
    links = {method: f"../{page.removesuffix('.md')}.html" for method, page in method_pages.items()}
    made = {INDEX: _index(protocols)}
    for protocol in protocols:
        made[protocol.place] = _TEMPLATES.get_template("leaderboard.md.j2").render(
            title=protocol.title,
            facts=_facts(protocol),
            choices=[(method, protocol.table.method_title(method)) for method in protocol.methods()],
            lengths=protocol.main.bits,
            pairs=comparison.data(protocol),
            enough=ENOUGH_RUNS,
            too_few=TOO_FEW,
            files=[f"{protocol.name}{ending}" for ending in (TIDY, RUNS, PROVENANCE)],
            **content([protocol.view(links)]),
        )
    return made


def _index(protocols: Sequence[Protocol]) -> str:
    rows = [
        f"- [{one.title}]({one.name}.md): {len(one.board.methods)} methods, "
        f"{', '.join(map(str, one.board.bits))} bits, dataset {_dataset(one)}"
        for one in protocols
    ]
    places = [f"{one.name}.md" for one in protocols]
    return "\n\n".join(["# Leaderboards", LEAD, "\n".join(rows), toctree(places)]) + "\n"


def _dataset(protocol: Protocol) -> str:
    return (protocol.board.about["settings"] or {}).get("dataset", protocol.name)


def _facts(protocol: Protocol) -> str:
    """What was measured, and where, in sentences."""
    about = protocol.board.about
    members, made = about.get("members") or [], about.get("published") or []
    words = [f"Dataset {_dataset(protocol)}."]
    if members and all("queries" in one and "database" in one for one in members):
        folds = f" in {len(members)} folds" if len(members) > 1 else ""
        sizes = " or ".join(f"{size:,}" for size in sorted({one["database"] for one in members}))
        words.append(f"{sum(one['queries'] for one in members):,} queries{folds}, database of {sizes} items.")
    if made:
        machines = " and ".join(sorted({f"{one['date']}, {one['processor']}" for one in made}))
        threads, devices = about.get("threads") or [], about.get("devices") or []
        on = f" ({' or '.join(map(str, threads))} thread{'s' * (threads != [1])} of {' or '.join(devices)})"
        words.append(f"Measured {machines}{on * bool(threads)}.")
    return " ".join(words)
