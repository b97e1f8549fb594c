"""One page a method, made from its file, its settings, docs/differences.md and the leaderboards."""

import fnmatch
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from methods.base.catalogue import MethodMetadata
from reporting.printed.markdown import markdown_table
from reporting.tables.titles import COLLAPSED, EN_DASH
from workflow.configuration.yaml_reader import read_settings
from workflow.documentation.leaderboard_models import Protocol

LEARNS_FROM = {
    "none": "no labels",
    "binary": "affinity above 0 or not",
    "graded": "values of the affinity",
    "labels": "labels",
}
LOOKS_AT = {
    "classwise": "classwise: an item and its class",
    "pointwise": "pointwise: pairs of items",
    "pairwise": "pairwise: triplets of items",
    "listwise": "listwise: rankings",
    "unsupervised": "unsupervised: no labels",
    "bound": "a bound: what hashing has to beat",
}
# Bases that have a page of their own in the API reference: their hyper-parameters are described there.
DESCRIBED = {
    "HashingMethod": "methods.base.HashingMethod",
    "DeepHashing": "methods.base.deep.DeepHashing",
}
_LINK = re.compile(r"\]\((?![a-z]+:)")  # the beginning of a link to a page of docs/


def place(name: str) -> str:
    """A method's page, path among the site's sources."""
    return f"methods/{name}.md"


def page(
    about: MethodMetadata,
    variants: Mapping[str, Mapping],
    settings: Mapping,
    differences: Iterable[tuple[str, str, str]],
    protocols: Iterable[Protocol],
) -> str:
    """The text of a method's page.

    variants: names of the methods that are this one with other settings -> their entries of
    config/methods.yaml; settings: its own entry; differences: (here, published, effect) of its rows in
    docs/differences.md; protocols: those of the leaderboards.
    """
    parts = [
        f"# {about.title}",
        _sentence(about.summary.partition(": ")[2] or about.summary),
        _properties(about),
        "## Paper",
        about.reference + (f"\n\n[Read the paper]({about.paper})" if about.paper else ""),
        "## Formula",
        _description(about),
        "## What differs from the paper",
        _differences(differences),
        "## Hyper-parameters",
        _hyperparameters(about, settings),
        *_variants(variants),
        "## Leaderboard",
        _rows(about, variants, protocols),
    ]
    return "\n\n".join(parts) + "\n"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _properties(about: MethodMetadata) -> str:
    rows = [
        ("Name in tables", f"`{about.name}`"),
        ("Its loss looks at", LOOKS_AT[about.family]),
        ("Learns from", LEARNS_FROM[about.supervision]),
        ("Training sees", about.sees),
        ("Trains networks on images", "yes, end to end" if about.end_to_end else "no: learns on features"),
    ]
    if about.supervision == "labels":
        rows.append(("Items with several labels", "yes" if about.several_labels else "refused"))
    rows.append(("File", f"[methods/{about.path.name}](../../methods/{about.path.name})"))
    return markdown_table(("", ""), rows, 0)


def _description(about: MethodMetadata) -> str:
    """The docstring of the class; one without a formula, and what its bases add to it."""
    bases = list(about.classes.items())[1:]
    texts = [about.description, *(docstring for name, (docstring, _) in bases if name not in DESCRIBED)]
    text = "\n\n".join(filter(None, texts))
    # A line that begins with names of hyper-parameters and a colon describes these.
    name = f"(?:{'|'.join(about.parameters)})"
    return re.sub(rf"^({name}(?:, {name})*): ", r"- **\1**: ", text, flags=re.MULTILINE)


def _differences(rows: Iterable[tuple[str, str, str]]) -> str:
    found = list(rows)
    if not found:
        return "No difference from the paper is known. [All differences](../differences.md)"
    table = markdown_table(("here", "published", "reason and effect"), found, 0)
    return f"{table}\n\n[All differences](../differences.md)"


def _hyperparameters(about: MethodMetadata, settings: Mapping) -> str:
    known = {name for base in DESCRIBED for name in about.classes.get(base, ("", ()))[1]}
    # A class may declare a hyper-parameter of its base again, with another default.
    own = [name for name in about.parameters if name not in known]
    own += [name for name in about.parameters if name in known and _changed(about, name, settings)]
    text = [_table(about, own, settings) if own else "None of its own."]
    bases = [f"{{py:obj}}`{base} <{DESCRIBED[base]}>`" for base in DESCRIBED if base in about.classes]
    text.append(
        f"Common to many methods, and described there: the hyper-parameters of {' and '.join(bases)}."
    )
    if source := settings.get("source"):
        text.append(f"Source of the settings: {source}.")
    if settings.get("protocols"):
        named = ", ".join(f"`{name}`" for name in settings["protocols"])
        text.append(
            f"[config/methods.yaml](../../config/methods.yaml) has other settings for the protocols {named}."
        )
    return "\n\n".join(text)


def _changed(about, name, settings):
    declared = [cls for cls, (_, names) in about.classes.items() if name in names]
    return declared[0] not in DESCRIBED or name in (settings.get("defaults") or {})


def _table(about, names, settings):
    space: dict[str, Any] = {**about.common_space, **about.space}
    chosen = settings.get("defaults") or {}
    heading = ("hyper-parameter", "type", "default", "setting", "a search chooses from")
    rows = [
        (
            f"`{name}`",
            f"`{about.parameters[name]}`".replace("|", "\\|"),
            f"`{about.defaults[name]}`" if name in about.defaults else "",
            f"`{chosen[name]!r}`" if name in chosen else "",
            _choices(space.get(name)),
        )
        for name in names
    ]
    return markdown_table(heading, rows, 0)


def _choices(choices):
    if isinstance(choices, dict):
        low, high = choices["log_uniform"]
        return f"{low:g} to {high:g}, log-uniformly"
    return ", ".join(f"`{choice!r}`" for choice in choices or ())


def _variants(variants: Mapping[str, Mapping]) -> list[str]:
    if not variants:
        return []
    rows = []
    for name, entry in variants.items():
        set_ = ", ".join(f"`{key}: {value!r}`" for key, value in (entry.get("defaults") or {}).items())
        rows.append((f"`{name}`", entry.get("title", name), set_, entry.get("source", "")))
    table = markdown_table(("variant", "title", "settings", "source"), rows, 0)
    return ["## Variants", "The same class with other settings, as rows of their own.", table]


def _rows(about, variants, protocols):
    """Its rows of the leaderboards: AP with its range, NDCG, and its place among the methods."""
    names = {about.name: about.title} | {name: entry.get("title", name) for name, entry in variants.items()}
    rows = []
    for protocol in protocols:
        frame = protocol.board.tidy
        frame = frame[(frame["protocol"] == protocol.name) & frame["mean"].notna()]
        known = list(frame[frame["method"].isin(names)].itertuples())
        scores = {(row.metric, row.method, row.bits): row for row in known}
        for name, title in names.items():
            for bits in sorted({row.bits for row in known if row.method == name and row.metric == "ap"}):
                row = (
                    f"[{protocol.title}](../{protocol.place})",
                    f'<a href="../{protocol.place.removesuffix(".md")}.html#{name}">{title}</a>',
                    str(bits),
                    _mean(scores[("ap", name, bits)]),
                    _range(scores.get(("ap_min", name, bits)), scores.get(("ap_max", name, bits))),
                    _mean(scores.get(("ndcg", name, bits))),
                    protocol.rank(name, bits),
                )
                rows.append(row)
    if not rows:
        return "No leaderboard has a row of it yet."
    head = ("protocol", "row", "bits", "AP<sub>T</sub>", "range", "NDCG<sub>T</sub>", "place")
    note = (
        "Mean ± standard deviation over seeds. *Range*: AP in the worst and in the best order of tied items. "
        "*Place*: by the first metric of the protocol's leaderboard among the methods that learn from the "
        "training set alone; bounds and uncoded features have none. A few thousandths do not rank methods, "
        "nor do rows whose settings were not searched alike, as those of the digits: see "
        "[results](../results.md)."
    )
    return f"{markdown_table(head, rows, numbers=5)}\n\n{note}"


def _mean(row):
    if row is None or math.isnan(row.mean):
        return EN_DASH
    spread = "" if math.isnan(row.std) else f" ± {row.std:.3f}"
    return f"{row.mean:.3f}{spread}" + (f" {COLLAPSED}" if row.collapsed else "")


def _range(low, high):
    return EN_DASH if low is None or high is None else f"{low.mean:.3f}{EN_DASH}{high.mean:.3f}"


def differences(text: str, names: Collection[str]) -> dict[str, list[tuple[str, str, str]]]:
    """Method -> (here, published, reason and effect) of its rows in docs/differences.md.

    A row is of the methods that its first cell names, in backquotes, with * for any characters; of those of
    the row above where that cell is empty; and, in a table without a column of methods, of those that the
    heading above names. Tables of measurements have no column "here". Links lead from docs/methods/, where
    the pages of methods are.
    """
    found: dict[str, list[tuple[str, str, str]]] = {name: [] for name in names}
    heading: list[str] = []
    columns, named = 0, []
    for line in text.splitlines():
        if line.startswith("#"):
            heading, columns = _named(line, names), 0
        elif not line.startswith("|"):
            columns = 0
        elif not columns:
            first = _cells(line)
            columns, named = len(first), heading if first[0] == "here" else []
            by_row = first[:2] == ["method", "here"]
        elif not set(line) <= set("|-: "):
            cells = _cells(line)
            if by_row and cells[0]:
                named = _named(cells[0], names)
            for name in named:
                of_docs = (cell.replace("](#", "](differences.md#") for cell in cells[-3:])
                here, published, effect = (_LINK.sub("](../", cell) for cell in of_docs)
                found[name].append((here, published, effect))
    return found


def _cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _named(text, names):
    patterns = re.findall(r"`([\w*]+)`", text)
    return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def pages(
    catalogue: Mapping[str, MethodMetadata], root: Path, protocols: Sequence[Protocol]
) -> dict[str, str]:
    """Path among the site's sources -> text, of every method's page. protocols: of the leaderboards."""
    settings = read_settings(root / "config" / "methods.yaml")
    rows = differences((root / "docs" / "differences.md").read_text(encoding="utf-8"), catalogue)
    variants = _all_variants(root)
    made = {}
    for name, about in catalogue.items():
        own = {other: entry for other, entry in variants.items() if entry["class"] == name}
        made[place(name)] = page(about, own, settings.get(name) or {}, rows[name], protocols)
    return made


def places(catalogue: Mapping[str, MethodMetadata], root: Path) -> dict[str, str]:
    """Method or variant -> its page, path among the site's sources."""
    found = {name: place(entry["class"]) for name, entry in _all_variants(root).items()}
    return found | {name: place(name) for name in catalogue}


def _all_variants(root):
    """Name -> entry of every variant, of config/methods.yaml and of the examples."""
    entries = read_settings(root / "config" / "methods.yaml")
    for path in sorted((root / "docs" / "examples").glob("*.yaml")):
        entries |= read_settings(path).get("methods", {})
    return {name: entry for name, entry in entries.items() if "class" in entry}
