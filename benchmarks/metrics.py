"""Each metric: its share of the time of a score."""

from benchmarks import synthetic
from benchmarks.report import duration, progress, rounded
from benchmarks.timing import interleave
from tiebench.counting.histograms import JointHistograms, joint_histograms
from tiebench.metric_table import METRICS
from tiebench.scoring import score_histograms, some_queries

CUT = 1000

COUNTING = "joint histograms"
PLAIN = "score of the histograms, every metric without a cut"
CUT_TOO = f"score of the histograms, also at K = {CUT:,}"


def run(report, quick):
    """Print a table for one class and one for several labels an item."""
    report.write("## Metrics: share of the time of a score")
    for shape in (synthetic.IMAGENET100, synthetic.NUS21):
        progress(f"metrics: {shape.name}")
        _shares(report, synthetic.codes(shape, 48), rounds=3 if quick else 7)


def _shares(report, codes, rounds):
    found = joint_histograms(codes.query, codes.database, codes.bits, codes.affinity)

    def fresh():  # a metric keeps what the next one needs: nothing of it may be left
        return JointHistograms(found.levels, found.counts)

    binary = found.levels[-1] <= 1
    timed = {
        COUNTING: lambda: joint_histograms(codes.query, codes.database, codes.bits, codes.affinity),
        PLAIN: lambda: score_histograms(fresh()),
        CUT_TOO: lambda: score_histograms(fresh(), (CUT,)),
    }
    alone = {}
    for metric in METRICS.values():
        if binary and metric.binary is not None:
            continue  # the values of another entry are taken
        values = {None: [()], "cutoff": [(CUT,)], "radius": [(radius,) for radius in metric.radii]}
        alone[metric.name] = lambda metric=metric, values=values[metric.parameter]: [
            metric.compute(some, *value) for some in some_queries(found) for value in values
        ]
    seen = interleave(timed | alone, rounds)
    whole = seen[COUNTING].median + seen[CUT_TOO].median
    report.write(
        f"### {codes.shape.name}, {codes.bits} bits: {codes.shape.queries:,} x {codes.shape.items:,}",
        f"K = {CUT:,}; of a metric within a radius, all radii of its entry. Each metric is timed alone, with "
        "the ties and sums of ranks that it shares with others counted again, so that the shares add up to "
        "more than those of the scores.",
    )
    report.rows(
        ["what", "median", "share of counting and scoring"],
        [
            (name, duration(time.median), f"{rounded(100 * time.median / whole)} %")
            for name, time in seen.items()
        ],
    )
    score = f"{duration(seen[COUNTING].median + seen[PLAIN].median)} ({duration(whole)} with K = {CUT:,})"
    report.target(f"joint histograms and every metric, {codes.shape.name}, 48 bits", "under 0.5 s", score)
