from tiebench import comparison as comparison
from tiebench import diagnostics as diagnostics
from tiebench import leaderboards as leaderboards
from tiebench import metrics as metrics
from tiebench import prefixes as prefixes
from tiebench import scoring as scoring
from tiebench import training as training
from tiebench._version import __version__ as __version__
from tiebench.codes import collapse
from tiebench.counting import distributed, on_device, parts
from tiebench.counting import histograms as hamming
from tiebench.diagnostics import Health as Health
from tiebench.diagnostics import health as health
from tiebench.losses import relaxed
from tiebench.rankings import exact, radius, ties
from tiebench.runs import scores as runs
from tiebench.runs.scores import RunScores as RunScores
from tiebench.runs.scores import score_array as score_array
from tiebench.runs.scores import score_run as score_run
from tiebench.scoring import Scores as Scores
from tiebench.scoring import score as score
from tiebench.search import export, lookup, neighbours, rescoring
from tiebench.search.lookup import lookup_cost as lookup_cost
from tiebench.splits import check as split_check

__all__ = [
    "Health",
    "RunScores",
    "Scores",
    "__version__",
    "collapse",
    "comparison",
    "diagnostics",
    "distributed",
    "exact",
    "export",
    "hamming",
    "health",
    "leaderboards",
    "lookup",
    "lookup_cost",
    "metrics",
    "neighbours",
    "on_device",
    "parts",
    "prefixes",
    "radius",
    "relaxed",
    "rescoring",
    "runs",
    "score",
    "score_array",
    "score_run",
    "scoring",
    "split_check",
    "ties",
    "training",
]
