"""A run of a million lines and its judgements to scores, compared with pytrec_eval, ranx and plain Python."""

import math
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks import commands, optional_peers
from benchmarks.report import duration, progress
from benchmarks.timing import agree, interleave
from tiebench import score_run

QUERIES, QUICK_QUERIES, DEPTH, JUDGED = 1000, 100, 1000, 50
MEASURES = ("ap", "ndcg@10", "recall@100")
FILES, DICTIONARIES = "score_run, files", "score_run, dictionaries"
COMMAND = "`tiebench score-run`, its start included"
PYTHON = "plain Python (ties as sorted leaves them), files"


def run(report, quick=False):
    """Print all tables."""
    queries, rounds = (QUICK_QUERIES, 3) if quick else (QUERIES, 5)
    libraries = optional_peers.found(optional_peers.RUN_PEERS)
    report.write(
        "## Rankings: runs to scores",
        f"A synthetic run of {queries:,} queries and {DEPTH:,} documents each, {JUDGED} judged documents a "
        f"query, of which some are not retrieved; {', '.join(MEASURES)}. All agree to 1e-9 where nothing is "
        "tied. Only score_run gives means and ranges over the orders of ties.",
    )
    lines = f"{queries * DEPTH:,} lines"
    with tempfile.TemporaryDirectory(prefix="tiebench-rankings-") as folder:
        files = write(Path(folder), queries)
        progress(f"rankings: {lines}")
        for base, competitors in (
            (FILES, from_files(files, libraries)),
            (DICTIONARIES, from_dictionaries(files, libraries)),
        ):
            check(competitors)
            names = [*competitors][1:]
            if base == FILES:
                competitors[COMMAND] = lambda: commands.python(
                    "tiebench", "score-run", *files, "--measures", ",".join(MEASURES)
                )
            seen = report.compare(f"{base}, {lines}", competitors, rounds, base)
            if base == FILES:
                report.wait(f"{COMMAND}, {lines}", duration(seen[COMMAND].median))
            for name in names:
                report.peer(f"`{base}`, {lines}", name, seen[name].ratio_to(seen[base]))
        tied = write(Path(folder), queries, levels=20)
        found = score_run(*tied, MEASURES).means
        report.write(
            f"With 20 different scores, {found['tied_lines']:.0%} of the lines are tied; AP is "
            f"{found['ap_min']:.4f} to {found['ap_max']:.4f}, mean {found['ap']:.4f}. Scoring it takes "
            f"{duration(interleave({FILES: lambda: score_run(*tied, MEASURES)}, rounds)[FILES].median)}."
        )


def write(folder, queries, levels=None):
    """Files of a run and its judgements; levels: of the scores, or None for scores without ties.

    Scores are eighths, so that single precision, which trec_eval uses, does not tie them.
    """
    rng = np.random.default_rng(0)
    run, qrels = folder / f"{levels}.run", folder / f"{levels}.qrels"
    with run.open("w") as lines, qrels.open("w") as judgements:
        for query in range(queries):
            documents = rng.permutation(5 * DEPTH)[: DEPTH + JUDGED] + 1_000_000
            values = (
                np.arange(DEPTH, 0, -1) if levels is None else np.sort(rng.integers(0, levels, DEPTH))[::-1]
            )
            lines.writelines(
                f"{query + 100_000} Q0 document-{document} {rank} {value / 8:.6f} synthetic\n"
                for rank, (document, value) in enumerate(zip(documents.tolist(), values.tolist()), start=1)
            )
            # Most judged documents are near the top, some are not retrieved.
            places = np.minimum(rng.geometric(0.01, 4 * JUDGED), DEPTH + JUDGED) - 1
            for place in list(dict.fromkeys(places.tolist()))[:JUDGED]:
                relevance = int(rng.integers(0, 4))
                judgements.write(f"{query + 100_000} 0 document-{documents[place]} {relevance}\n")
            judgements.write(f"{query + 100_000} 0 document-{documents[-1]}x 1\n")
    return run, qrels


def from_files(files, libraries):
    """Name -> function from the two files to {measure: mean}."""
    run, qrels = files
    competitors = {
        FILES: lambda: _ours(run, qrels),
        PYTHON: lambda: by_hand(read(run, 4, float), read(qrels, 3, int)),
    }
    if trec := libraries.get("pytrec_eval"):

        def by_pytrec_eval():
            with run.open() as lines, qrels.open() as judgements:
                return pytrec_eval_means(trec, trec.parse_run(lines), trec.parse_qrel(judgements))

        competitors["pytrec_eval, files"] = by_pytrec_eval
    if ranx := libraries.get("ranx"):
        competitors["ranx, files"] = lambda: ranx_means(
            ranx,
            ranx.Run.from_file(str(run), kind="trec"),
            ranx.Qrels.from_file(str(qrels), kind="trec"),
        )
    return competitors


def from_dictionaries(files, libraries):
    """Name -> function from dictionaries that are there to {measure: mean}."""
    run, qrels = read(files[0], 4, float), read(files[1], 3, int)
    competitors = {DICTIONARIES: lambda: _ours(run, qrels)}
    if trec := libraries.get("pytrec_eval"):
        competitors["pytrec_eval, dictionaries"] = lambda: pytrec_eval_means(trec, run, qrels)
    if ranx := libraries.get("ranx"):
        own = ranx.Run(run), ranx.Qrels(qrels)
        competitors["ranx, dictionaries"] = lambda: ranx_means(ranx, ranx.Run(run), ranx.Qrels(qrels))
        competitors["ranx, its own Run and Qrels given"] = lambda: ranx_means(ranx, *own)
    return competitors


def _ours(run, qrels):
    found = score_run(run, qrels, MEASURES).means
    return {name: found[name] for name in MEASURES}


def pytrec_eval_means(library, run, qrels):
    """Means of pytrec_eval over the judged queries."""
    evaluator = library.RelevanceEvaluator(qrels, {"map", "ndcg_cut.10", "recall.100"})
    values = evaluator.evaluate(run)
    names = {"ap": "map", "ndcg@10": "ndcg_cut_10", "recall@100": "recall_100"}
    return {name: sum(one[theirs] for one in values.values()) / len(qrels) for name, theirs in names.items()}


def ranx_means(library, run, qrels):
    """Means of ranx; its "ndcg" has linear gains."""
    found = library.evaluate(qrels, run, ["map", "ndcg@10", "recall@100"])
    return {name: float(found[theirs]) for name, theirs in zip(MEASURES, ("map", "ndcg@10", "recall@100"))}


def read(path, column, number):
    """{query: {document: value}} of a TREC file, whose value, a `number`, is in this column."""
    found = defaultdict(dict)
    with path.open() as lines:
        for line in lines:
            words = line.split()
            found[words[0]][words[2]] = number(words[column])
    return dict(found)


def by_hand(run, qrels):
    """Means by loops over sorted lists, as in many evaluation scripts."""
    totals = dict.fromkeys(MEASURES, 0.0)
    for query, judged in qrels.items():
        scored = run.get(query, {})
        ranking = sorted(scored, key=scored.get, reverse=True)
        grades = [judged.get(document, 0) for document in ranking]
        hits, total = 0, 0.0
        for rank, grade in enumerate(grades, start=1):
            if grade > 0:
                hits += 1
                total += hits / rank
        relevant = sum(grade > 0 for grade in judged.values())
        best = sorted((max(grade, 0) for grade in judged.values()), reverse=True)[:10]
        ideal = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, start=1))
        gained = sum(max(grade, 0) / math.log2(rank + 1) for rank, grade in enumerate(grades[:10], start=1))
        totals["ap"] += total / relevant if relevant else 0.0
        totals["ndcg@10"] += gained / ideal if ideal else 0.0
        totals["recall@100"] += sum(grade > 0 for grade in grades[:100]) / relevant if relevant else 0.0
    return {name: total / len(qrels) for name, total in totals.items()}


def check(competitors):
    """Raise Disagreement unless all compute the same to 1e-9."""
    (_, ours), *others = competitors.items()
    expected = list(ours().values())
    for name, call in others:
        found = call()
        agree(name, expected, [found[measure] for measure in MEASURES], 1e-9)
