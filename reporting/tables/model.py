"""What a table asks for: `Table`, built once where its files are read.

A *cell* is (protocol, metric, method, bits). A *group* is one block of a table: the columns of one protocol
and one metric. A *panel* is a row of groups side by side under one header, as in the tables of the paper.
Everything that reporting makes is a function of a `Table` and its `Results`. Plans of tables read them, so
nothing here loads NumPy or pandas.
"""

import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from reporting.tables.runs import Run, RunCell, ScoreCell, Tuning
from reporting.tables.titles import BOUND, DAGGER, EARLIER, EXTERNAL, FAMILIES, TRAINING_SET
from tiebench.messages import did_you_mean

# Settings of a table that stay as its file has them.
AS_WRITTEN = ("title", "description", "fewer_seeds", "titles", "print_published", "figures")


@dataclass(frozen=True)
class Style:
    """How a method is written and drawn; None for what a table does not say.

    external: whether its codes are of another program; earlier: what differs between the form of the method
    that its row of the leaderboard has and that of today, "" for nothing. filled and dashes complete marker
    and colour, see `method_styles`.
    """

    title: str | None = None
    family: str | None = None
    colour: str | None = None
    marker: str | None = None
    paper: str | None = None
    sees: str | None = None
    external: bool = False
    earlier: str = ""
    filled: bool = True
    dashes: tuple[float, ...] | None = None


@dataclass(frozen=True)
class ProtocolSettings:
    """What reporting knows of a protocol.

    dataset, split: as the configuration has them; unseen: whether the classes of its queries are not learnt
    from; training_per_class: training items of each class, None where the split gives no such number;
    codes_of: the protocol whose runs made the codes, None for its own; published: everything that the
    leaderboard keeps of them, None for nothing.
    """

    dataset: str | None = None
    split: Mapping = field(default_factory=dict)
    unseen: bool = False
    training_per_class: int | None = None
    codes_of: str | None = None
    published: Mapping | None = None


@dataclass(frozen=True)
class Source:
    """A paper whose scores stand beside those of a table: cell -> (score, note on it or "")."""

    source: str
    citation: str
    url: str
    values: Mapping[ScoreCell, tuple[float, str]]

    @classmethod
    def from_json(cls, given: Mapping) -> "Source":
        values: dict[ScoreCell, tuple[float, str]] = {}
        for one in given["values"]:
            cell = one["protocol"], one["metric"], one["method"], one["bits"]
            values[cell] = float(one["value"]), one.get("note") or ""
        return cls(given["source"], given.get("citation") or "", given.get("url") or "", values)


@dataclass(frozen=True)
class Filled:
    """The cells that a table takes from the leaderboard.

    fingerprints: protocol or fold -> those of the data of these runs; per_query: file of the leaderboard with
    their scores per query -> its sha256.
    """

    runs: tuple[Run, ...] = ()
    fingerprints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    per_query: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, given: Mapping | None) -> "Filled":
        given = given or {}
        runs = tuple(Run.from_json(record) for record in given.get("records") or ())
        return cls(runs, given.get("fingerprints") or {}, given.get("per_query") or {})

    @functools.cached_property
    def cells(self) -> frozenset[RunCell]:
        return frozenset(run.cell for run in self.runs)


@dataclass(frozen=True)
class Group:
    """The columns of one block of a table: one protocol, one metric, several bits; `methods` are its rows."""

    protocol: str
    metric: str
    title: str
    bits: tuple[int, ...]
    methods: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.protocol}/{self.metric}"

    def cell(self, method: str, bits: int) -> ScoreCell:
        return self.protocol, self.metric, method, bits

    def cells(self) -> Iterator[ScoreCell]:
        """The cells, method after method."""
        return (self.cell(method, bits) for method in self.methods for bits in self.bits)


def claimed_metrics(sources: Iterable[Mapping]) -> set[str]:
    """Metrics that claims name, whichever a table shows; sources: contents of files of claims."""
    named = [
        place.get("metric", ())
        for source in sources
        for claim in source["claims"]
        for place in (claim, claim.get("left") or {}, claim.get("right") or {})
    ]
    return {name for one in named for name in ([one] if isinstance(one, str) else one)}


@dataclass(frozen=True)
class Table:
    """What a table asks for, and how it is written and drawn.

    groups: its blocks, rows in printing order; methods: of all blocks, in the order of the configuration;
    seeds: of the runs of a method, or the first `fewer_seeds` of them; styles, families: by method; titles:
    of methods without a row, which claims name; protocols: titles, also of some that only claims name; folds:
    protocol -> the protocols whose runs its scores are made of; settings: by protocol; tunings: by cell;
    sources: whose scores are compared, in order; print_published: whether they are printed too;
    reference_lines: methods that figures mark; figures: figure -> options; refused: cell -> why it has no
    run; claims: contents of files of claims; uncoded: protocols whose features are scored; filled: what is
    taken from the leaderboard.
    """

    name: str
    groups: tuple[Group, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    title: str = ""
    description: str = ""
    fewer_seeds: Mapping[str, int] = field(default_factory=dict)
    styles: Mapping[str, Style] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    protocols: Mapping[str, str] = field(default_factory=dict)
    folds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    settings: Mapping[str, ProtocolSettings] = field(default_factory=dict)
    tunings: Mapping[RunCell, Tuning] = field(default_factory=dict)
    print_published: bool = False
    reference_lines: tuple[str, ...] = ()
    figures: Mapping[str, Mapping] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    refused: Mapping[RunCell, str] = field(default_factory=dict)
    claims: tuple[Mapping, ...] = ()
    uncoded: tuple[str, ...] = ()
    filled: Filled = Filled()

    @classmethod
    def from_json(cls, settings: Mapping) -> "Table":
        """The table of what `<results>/<table>.json` holds: "table", "published", "refused", "claims", …

        A block without `methods` takes the table's. Raises ValueError if a cell is in the table twice, and
        KeyError for settings that lack a part.
        """
        entry = settings["table"]
        listed = [*entry["methods"], *(m for block in entry["blocks"] for m in block.get("methods") or ())]
        methods, families = tuple(dict.fromkeys(listed)), entry.get("families") or {}
        # A block without a title has that of the first block of its protocol that has one.
        protocols = entry.get("protocols") or {}
        given = {block["protocol"]: block["title"] for block in entry["blocks"][::-1] if block.get("title")}
        titles = protocols | given
        groups = [
            Group(
                block["protocol"],
                block["metric"],
                block.get("title") or titles.get(block["protocol"]) or block["protocol"],
                tuple(block["bits"]),
                tuple(in_order(block.get("methods") or entry["methods"], methods, families)),
            )
            for block in entry["blocks"]
        ]
        seen: set[ScoreCell] = set()
        for index, group in enumerate(groups):
            for cell in group.cells():
                if cell in seen:
                    words = "{}, {}, {}, {} bits".format(*cell)
                    raise ValueError(f"table {entry['name']}: blocks[{index}]: {words} is in the table twice")
                seen.add(cell)
        return cls(
            name=entry["name"],
            groups=tuple(groups),
            methods=methods,
            seeds=tuple(entry["seeds"]),
            **{name: entry[name] for name in AS_WRITTEN if entry.get(name)},
            styles={name: Style(**_given(Style, of)) for name, of in (entry.get("styles") or {}).items()},
            families=families,
            protocols=protocols,
            folds={name: tuple(of) for name, of in (entry.get("folds") or {}).items()},
            settings={
                name: ProtocolSettings(**_given(ProtocolSettings, of) | {"published": of})
                for name, of in (entry.get("settings") or {}).items()
            },
            tunings={_run_cell(of): Tuning(of["trials"], of["budget"]) for of in entry.get("budgets") or ()},
            reference_lines=tuple(entry.get("reference_lines") or ()),
            sources=tuple(Source.from_json(of) for of in settings.get("published") or ()),
            refused={_run_cell(of): of["reason"] for of in settings.get("refused") or ()},
            claims=tuple(settings.get("claims") or ()),
            uncoded=tuple(settings.get("uncoded") or ()),
            filled=Filled.from_json(settings.get("filled")),
        )

    # -- rows and columns --

    @property
    def heading(self) -> str:
        """The title, or the name of a table without one."""
        return self.title or self.name

    @functools.cached_property
    def rows(self) -> list[str]:
        """The methods of all groups, in printing order."""
        return self._in_order(self.groups)

    @functools.cached_property
    def cells(self) -> dict[RunCell, list[Group]]:
        """(protocol, method, bits) -> the groups that ask for it, group after group."""
        found: dict[RunCell, list[Group]] = {}
        for group in self.groups:
            for protocol, _, method, bits in group.cells():
                found.setdefault((protocol, method, bits), []).append(group)
        return found

    def panels(
        self, room: float = 8, width: Callable[[Group], float] = lambda group: len(group.bits)
    ) -> list[tuple[list[Group], list[str]]]:
        """Panels no wider than `room`: groups side by side, and the methods of at least one of them, in row
        order. By default a column of scores is 1 wide.

        Groups keep their order and are never split: a group wider than `room` has a panel to itself.
        """
        rows: list[list[Group]] = []
        for group in self.groups:
            if rows and sum(map(width, [*rows[-1], group])) <= room:
                rows[-1].append(group)
            else:
                rows.append([group])
        return [(row, self._in_order(row)) for row in rows]

    def _in_order(self, groups: Iterable[Group]) -> list[str]:
        """Methods of groups family after family, within one in the order of the table."""
        methods = dict.fromkeys(method for group in groups for method in group.methods)
        return in_order(methods, self.methods, self.families)

    def by_family(self, methods: Sequence[str]) -> list[tuple[str, list[str]]]:
        """Rows in printing order, cut where the family changes: [(family, methods), …].

        One piece without a name, ("", methods), where they are all of one family or of none.
        """
        pieces = [(family, list(of)) for family, of in itertools.groupby(methods, key=self.family)]
        return pieces if len(pieces) > 1 else [("", list(methods))]

    def only(self, methods: Sequence[str] | None = None, blocks: Sequence[str] | None = None) -> "Table":
        """The part with these methods and blocks; None: all of them.

        methods: names; blocks: "<protocol>" or "<protocol>/<metric>". Order stays the table's, and so do the
        styles: a method looks the same in every selection.

        Raises ValueError for a name that the table does not have, and where nothing is left.
        """
        chosen = self.methods if methods is None else methods
        for method in chosen:
            if method not in self.methods:
                end = did_you_mean(method, self.methods)
                raise ValueError(f"table {self.name} has no method {method!r}{end}")
        names = [(group.protocol, group.name) for group in self.groups]
        for one in blocks or []:
            if not any(one in both for both in names):
                end = did_you_mean(one, dict.fromkeys(name for both in names for name in both))
                raise ValueError(f"table {self.name} has no block {one!r}{end}")
        kept = []
        for group in self.groups:
            rows = tuple(method for method in group.methods if method in chosen)
            if rows and (blocks is None or {group.protocol, group.name} & set(blocks)):
                kept.append(replace(group, methods=rows))
        if not kept:
            raise ValueError(f"table {self.name}: no block has the chosen methods, so nothing to draw")
        return replace(self, groups=tuple(kept))

    # -- runs --

    def method_seeds(self, method: str) -> list[int]:
        return method_seeds(self.seeds, self.fewer_seeds, method)

    def cell_seeds(self, method: str, runs: Mapping[int, Run]) -> list[int]:
        """The seeds that a cell is to have, given its runs: the method's, or those of the leaderboard."""
        filled = any(run.from_leaderboard for run in runs.values())
        return sorted(runs) if filled else self.method_seeds(method)

    def members(self, protocol: str) -> list[str]:
        """The protocols whose runs a protocol's scores are made of: its folds, or itself."""
        return list(self.folds.get(protocol) or [protocol])

    # -- methods and protocols --

    def style(self, method: str) -> Style:
        return self.styles.get(method) or Style()

    def family(self, method: str) -> str:
        """One of FAMILIES, "" where the table names none: it then keeps its own order, ungrouped."""
        return self.families.get(method, "")

    def competes(self, method: str, protocol: str | None = None) -> bool:
        """Whether a method takes part in what compares the methods of a table.

        Bounds do not, and neither do methods that see more than the training set; protocol: None for any.
        """
        return self.family(method) != BOUND and self.sees(method, protocol) == TRAINING_SET

    def is_unseen(self, protocol: str) -> bool:
        """Whether the classes of a protocol's queries are not learnt from, by its settings in the table."""
        return protocol in self.settings and self.settings[protocol].unseen

    def has_other_labels(self, protocol: str) -> bool:
        """Whether training can see labels of database items besides those of the training set: not where
        classes are unseen, nor where the training set is all of the database."""
        whole = protocol in self.settings and self.settings[protocol].split.get("training") == "all"
        return not (whole or self.is_unseen(protocol))

    def sees(self, method: str, protocol: str | None = None) -> str:
        """What a method's training has access to, as its style says: "training set" by default, and where
        there are no other labels. protocol: None for any of the table."""
        asked = list(self.settings) if protocol is None else [protocol]
        if asked and not any(map(self.has_other_labels, asked)):
            return TRAINING_SET
        return self.style(method).sees or TRAINING_SET

    def method_title(self, method: str) -> str:
        """The title of a method; else its name."""
        return self.style(method).title or self.titles.get(method) or method

    def row_title(self, method: str) -> str:
        """The heading of a method's row: its title, with a dagger if it sees more than the training set, a
        pilcrow if its codes were made elsewhere, and two bars if they are of an earlier form."""
        marks = DAGGER * (self.sees(method) != TRAINING_SET) + EXTERNAL * self.style(method).external
        return self.method_title(method) + marks + EARLIER * bool(self.style(method).earlier)

    def protocol_title(self, protocol: str) -> str:
        """The title of a protocol: of its first block, else of `protocols`, else its name."""
        titles = (group.title for group in self.groups if group.protocol == protocol)
        return next(titles, None) or self.protocols.get(protocol) or protocol

    def training_sizes(self) -> dict[str, int]:
        """Protocol -> training items of each class, of those that differ in nothing else; {} if none do."""
        found: dict[str, dict[str, int]] = {}
        for protocol, settings in self.settings.items():
            if settings.training_per_class is not None:
                split = {key: value for key, value in settings.split.items() if key != "training"}
                rest = {**(settings.published or {}), "split": split, "training_per_class": None}
                key = json.dumps(rest, sort_keys=True)
                found.setdefault(key, {})[protocol] = settings.training_per_class
        largest = max(found.values(), key=len, default={})
        return largest if len(largest) > 1 else {}

    @functools.cached_property
    def published_values(self) -> dict[ScoreCell, tuple[float, str, str]]:
        """Cell -> (score, source, note) that papers print, of the first of `sources` that has the cell."""
        result: dict[ScoreCell, tuple[float, str, str]] = {}
        for source in self.sources:
            for cell, (value, note) in source.values.items():
                result.setdefault(cell, (value, source.source, note))
        return result


def method_seeds(seeds: Sequence[int], fewer_seeds: Mapping[str, int], method: str) -> list[int]:
    """The seeds of a method's runs: all, or the first `fewer_seeds[method]` of them."""
    return list(seeds)[: fewer_seeds.get(method, len(seeds))]


def in_order(methods: Iterable[str], order: Sequence[str], families: Mapping[str, str]) -> list[str]:
    """Rows of a table: family after family, within one in an order that may lack some."""
    places, known = {method: place for place, method in enumerate(order)}, list(FAMILIES)

    def key(method: str) -> tuple[int, int]:
        of = families.get(method, "")
        return known.index(of) if of in known else len(known), places.get(method, len(places))

    return sorted(methods, key=key)


def _run_cell(given: Mapping) -> RunCell:
    return given["protocol"], given["method"], given["bits"]


def _given(kind: type, given: Mapping | None) -> dict[str, Any]:
    """Fields of a data class that a mapping has; null is its default."""
    names = (one.name for one in fields(kind))
    return {name: given[name] for name in names if given and given.get(name) is not None}
