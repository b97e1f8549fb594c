"""Which page stands where in the site. Methods, modules and other pages of docs/ are found by themselves."""

import re
from collections.abc import Mapping
from pathlib import Path

from methods._catalogue import FAMILIES, MethodMetadata
from workflow.documentation import api_pages, method_pages
from workflow.documentation.api_pages import toctree

# Pages that introduce a section and list its pages: path among the site's sources -> title, text, pages.
# Other pages of docs/ stand at the end of the first.
SECTIONS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "guide.md": (
        "User guide",
        "Score codes and rankings, compare them, and run the benchmark.",
        (
            *("use-the-library.md", "metrics.md", "compare-your-codes.md", "check-a-split.md", "health.md"),
            *(
                "large-databases.md",
                "score-rankings.md",
                "make-features.md",
                "text-embeddings.md",
                "protocols.md",
                "tuning.md",
                "table1.md",
                "cluster.md",
            ),
            *("configuration.md", "result-files.md", "glossary.md"),
        ),
    ),
    "examples.md": (
        "Examples",
        "Short notebooks with their outputs; each runs in less than a minute.",
        (
            *("example-train-with-talr.md", "example-score-your-codes.md", "example-add-a-method.md"),
            *("example-check-a-claim.md", "notebooks.md"),
        ),
    ),
    "extend.md": (
        "How to extend",
        "Each addition touches one place: a file, or an entry of a configuration file.",
        (
            *("add-a-method.md", "add-a-dataset.md", "add-a-protocol.md", "add-a-table.md"),
            *("add-a-figure.md", "add-a-metric.md", "contributing.md", "site-checklist.md"),
        ),
    ),
    "results-overview.md": (
        "Results",
        "What was measured, and what these measurements can and cannot say.",
        ("leaderboards/index.md", "results.md", "leaderboard.md", "performance.md", "differences.md"),
    ),
    "about.md": (
        "About",
        "How the suite is built and tested, and how to cite it.",
        ("architecture.md", "trust.md", "mutation.md", "changelog.md", "cite.md"),
    ),
}
METHODS = "methods.md"
# The bar at the top of every page.
TOP = ("quick-start.md", "examples.md", "guide.md", "extend.md", METHODS, "results-overview.md",
       api_pages.INDEX, "faq.md", "about.md")  # fmt: skip
FAMILY_TITLES = {
    "classwise": "Codes of classes",
    "pointwise": "Pairs",
    "pairwise": "Triplets",
    "listwise": "Lists",
    "unsupervised": "Without labels",
    "bound": "Bounds",
}


def descriptions(readme: str) -> dict[str, str]:
    """Path in the repository -> what the table of documentation in README.md says of it."""
    return dict(re.findall(r"^\| \[([^\]]+)\]\(\1\) \| (.+) \|$", readme, re.MULTILINE))


def section_pages(texts: Mapping[str, str], described: Mapping[str, str]) -> dict[str, str]:
    """The pages that introduce sections. texts: page -> text, for titles; described: page -> one line."""
    made = {}
    placed = {METHODS, "index.md", *TOP, *(one for _, _, listed in SECTIONS.values() for one in listed)}
    others = tuple(sorted(set(texts) - placed))
    for page, (title, text, listed) in SECTIONS.items():
        listed, others = listed + others, ()
        lines = [f"- [{heading(texts[one])}]({one}){_colon(described.get(one))}" for one in listed]
        made[page] = "\n\n".join([f"# {title}", text, "\n".join(lines), toctree(listed, hidden=True)]) + "\n"
    return made


def heading(text: str) -> str:
    """The title of a page. Raises ValueError if it has none."""
    found = re.search(r"^# (.+?)\s*$", text, re.MULTILINE)
    if not found:
        raise ValueError("a page without a title")
    return found[1]


def of_methods(catalogue: Mapping[str, MethodMetadata]) -> str:
    """The trees of the methods' pages, a family each."""
    trees = []
    for family in FAMILIES:
        found = [about for about in catalogue.values() if about.family == family]
        entries = [f"{about.title} <{method_pages.place(about.name)}>" for about in found]
        if found:
            trees.append(toctree(entries, hidden=True, caption=FAMILY_TITLES[family]))
    return "\n\n".join(trees) + "\n"


def of_home() -> str:
    """The tree of the home page: the bar at the top."""
    return toctree([f"FAQ <{page}>" if page == "faq.md" else page for page in TOP], hidden=True) + "\n"


def page_of(path: Path | str) -> str:
    """The page of a file of docs/."""
    return str(path).removeprefix("docs/")


def _colon(text):
    return f": {text}" if text else ""
