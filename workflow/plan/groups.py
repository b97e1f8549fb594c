"""Which runs one process makes and scores together, and how the rules of runs differ."""

from collections import Counter
from dataclasses import dataclass

from workflow.plan.runs import NAME, one_of


@dataclass(frozen=True)
class RunJob:
    """A kind of job that makes or scores runs: what distinguishes its rule from the others of its stage."""

    name: str  # ending of the rule's name
    protocol: str  # as paths have it: the wildcard, or the name of a group's protocol
    protocols: str  # pattern
    methods: str  # pattern
    runs: tuple[str, ...]  # <bits>/<seed> of each run
    together: tuple[int, ...] | None  # code lengths that belong together, where the rule names its own
    words: str  # its code lengths and seeds, for messages
    log: str

    @property
    def given(self):
        """What the wildcards of its rule do not say: a group's protocol.

        It is no wildcard, because Snakemake looks for the rule of a file by what stands before the first one:
        among a hundred groups of a hundred runs that would take longer than the rest of a plan.
        """
        return {"protocol": self.protocol} if self.together else {}

    @property
    def of_protocol(self):
        """Its protocol, as messages have it."""
        return self.protocol if self.together else "{wildcards.protocol}"


def groups(plan):
    """Each group of two runs or more of a protocol that one process makes, the same for several methods; all
    other runs that the tables ask for are jobs of their own.

    A group is (protocol, methods, bits, runs): names, ascending; the code lengths that belong together, also
    those that no table asks for; (bits, seed) of each run, ascending. What is grouped follows from the
    protocol's `runs_per_job`, which of these runs are made from all tables: the same whichever table is made,
    so that a run belongs to one job only. Codes of other programs are imported and scored one by one.
    """
    asked: dict[tuple[str, str, tuple[int, ...], int], set[tuple[int, int]]] = {}
    external = plan.configuration.external_methods()
    for table in plan["tables"]:
        for protocol, method, bits, seed in plan.runs(table):
            if method in external:
                continue
            size = plan["protocols"][protocol]["runs_per_job"]["seeds"]
            key = (protocol, method, plan.together(protocol, bits), seed // size)
            asked.setdefault(key, set()).add((bits, seed))
    alike: dict[tuple[str, tuple[int, ...], tuple[tuple[int, int], ...]], list[str]] = {}
    for (protocol, method, bits, _), runs in asked.items():
        if len(runs) > 1:
            alike.setdefault((protocol, bits, tuple(sorted(runs))), []).append(method)
    return [
        (protocol, tuple(sorted(methods)), bits, runs)
        for (protocol, bits, runs), methods in sorted(alike.items())
    ]


def run_jobs(plan, scored=False):
    """Each group of runs that one process serves, and the job of any run outside of all groups.

    scored: the jobs that score runs, instead of those that train methods. Protocols whose database is scored
    in parts have none; codes of other programs, and of other protocols, have these alone.
    """
    left_out = plan.protocols_in_parts() if scored else plan.protocols_of_codes()
    protocols = [name for name in plan["protocols"] if name not in left_out]
    jobs, grouped = [], []
    counts: Counter[str] = Counter()
    for protocol, names, together, made in groups(plan):
        if protocol not in protocols:
            continue
        counts[protocol] += 1
        methods = "|".join(names)
        runs = tuple(f"{bits}/{seed}" for bits, seed in made)
        lengths, seeds = (sorted(set(values)) for values in zip(*made))
        noun = "seeds" if len(seeds) > 1 else "seed"
        grouped.append(f"{protocol}/(?:{methods})/(?:{'|'.join(runs)})/")
        jobs.append(
            RunJob(
                name=f"_{protocol}_{counts[protocol]}",
                protocol=protocol,
                protocols=protocol,
                methods=methods,
                runs=runs,
                together=together,
                words=f"{', '.join(map(str, lengths))} bits, {noun} {', '.join(map(str, seeds))}",
                log=f"{_span(lengths)}/{_span(seeds)}",
            )
        )
    outside = f"(?!{'|'.join(grouped)})" if grouped else ""
    alone = RunJob(
        name="",
        protocol="{protocol}",
        protocols=f"{outside}(?:{one_of(protocols)})",
        methods=NAME if scored else f"(?!(?:{one_of(plan.configuration.external_methods())})/){NAME}",
        runs=("{bits}/{seed}",),
        together=None,
        words="{wildcards.bits} bits, seed {wildcards.seed}",
        log="{bits}/{seed}",
    )
    return [alone, *jobs]


def _span(numbers):
    """First and last of ascending numbers, as 12-48."""
    return f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else str(numbers[0])
