"""`tiebench score-run`: runs of any program, exactly under ties of their scores."""

import argparse
import csv
import io
import json
from pathlib import Path

from tiebench import files
from tiebench.command_line import Parser, Reads, Writes, names, word
from tiebench.commands import positive, print_text

HELP = "score a run against relevance judgements"
DESCRIPTION = """\
Score a ranking of any program, exactly under ties of its scores, and print
one JSON object: each measure as <measure>, the mean over all orders of tied
documents, <measure>_min and <measure>_max, and counts.

RUN    a TREC run, lines of `query Q0 document rank score tag`; higher scores
       are better, ranks play no part
QRELS  judgements, lines of `query 0 document relevance`, or BEIR's tsv,
       `query-id corpus-id score`

Both may be JSON, {"query": {"document": number}}, as ranx saves them, and
gzip. Tabs or white space separate columns. Instead of both, a file RUN.npz
holds scores and relevance, (queries, items), numbers and integers; or the
columns of both files, ids as integers or strings: query, document, score (m,)
and judged_query, judged_document, relevance (j,).

Relevant documents that the run lacks count in the denominators, as in
trec_eval.
"""
EPILOG = """\
measures: ap, ap@K, ndcg, ndcg@K, recall@K, precision@K, success@K,
          r_precision, reciprocal_rank, reciprocal_rank@K, with a number for K
"""
_DENSE = ("scores", "relevance")


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument("run", metavar="RUN", type=Reads(), help="a TREC run, or an .npz file")
    parser.add_argument(
        "qrels", metavar="QRELS", nargs="?", type=Reads(), help="judgements; none beside an .npz file"
    )
    parser.add_argument(
        "--measures",
        metavar="A,B,...",
        type=word,
        default="ap,ndcg@10,recall@100",
        help="separated by commas (default %(default)s)",
    )
    parser.add_argument(
        "--gains",
        choices=("linear", "exponential"),
        default="linear",
        help="of NDCG: the relevance (linear, the default, as trec_eval) or 2^relevance - 1 (exponential)",
    )
    parser.add_argument(
        "--ap-at-normaliser",
        choices=("hits", "min", "relevant"),
        default="relevant",
        help="what AP@K divides by: all relevant documents (relevant, the default, as trec_eval), min(K, "
        "relevant documents) (min), or those among the first K (hits)",
    )
    parser.add_argument(
        "--relevant-from",
        metavar="LEVEL",
        type=positive,
        default=1,
        help="smallest relevance that counts as relevant (default 1); NDCG weighs all above 0",
    )
    parser.add_argument(
        "--missing",
        choices=("zero", "skip"),
        default="zero",
        help="judged queries that the run lacks score 0 (the default) or are left out",
    )
    parser.add_argument(
        "--without-relevant",
        choices=("zero", "skip"),
        default="zero",
        help="queries without a relevant document score 0 (the default) or are left out",
    )
    parser.add_argument(
        "--float32",
        action="store_true",
        help="round scores to single precision first, as trec_eval does: scores that then agree are tied",
    )
    parser.add_argument(
        "--per-query", metavar="OUT.csv", type=Writes(), help="also write every measure per query"
    )


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the scores."""
    from tiebench.runs import scores as runs

    settings = {
        name: getattr(options, name)
        for name in ("gains", "ap_at_normaliser", "relevant_from", "without_relevant", "float32")
    }
    measures = names(options.measures)
    if Path(options.run).suffix == ".npz":
        if options.qrels is not None:
            parser.error("an .npz file holds the judgements too: give one file")
        arrays = files.read_npz(options.run, {*_DENSE, *runs.LISTS})
        with files.naming_values(options.run):
            if all(name in arrays for name in runs.LISTS):
                scores = runs.score_lists(arrays, measures, missing=options.missing, **settings)
            elif all(name in arrays for name in _DENSE):
                scores = runs.score_array(arrays["scores"], arrays["relevance"], measures, **settings)
            else:
                raise ValueError(
                    f"it must hold {' and '.join(_DENSE)}, or {', '.join(runs.LISTS)}; it holds "
                    f"{', '.join(arrays) or 'none of them'}"
                )
    elif options.qrels is None:
        parser.error("the following arguments are required: QRELS")
    else:
        scores = runs.score_run(options.run, options.qrels, measures, missing=options.missing, **settings)
    if options.per_query:
        files.write_text(options.per_query, _table(scores))
    return print_text(json.dumps(scores.means, indent=2))


def _table(scores):
    """CSV: a line per query, a column per value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["query", *scores.per_query])
    writer.writerows(zip(scores.queries, *(values.tolist() for values in scores.per_query.values())))
    return text.getvalue()
