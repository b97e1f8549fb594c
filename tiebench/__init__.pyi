from tiebench import collapse as collapse
from tiebench import comparison as comparison
from tiebench import diagnostics as diagnostics
from tiebench import distributed as distributed
from tiebench import exact as exact
from tiebench import export as export
from tiebench import hamming as hamming
from tiebench import inputs as inputs
from tiebench import leaderboards as leaderboards
from tiebench import lookup as lookup
from tiebench import metrics as metrics
from tiebench import neighbours as neighbours
from tiebench import on_device as on_device
from tiebench import parts as parts
from tiebench import prefixes as prefixes
from tiebench import radius as radius
from tiebench import relaxed as relaxed
from tiebench import rescoring as rescoring
from tiebench import runs as runs
from tiebench import scoring as scoring
from tiebench import split_check as split_check
from tiebench import ties as ties
from tiebench import training as training
from tiebench._version import __version__ as __version__
from tiebench.diagnostics import Health as Health
from tiebench.diagnostics import health as health
from tiebench.lookup import lookup_cost as lookup_cost
from tiebench.runs import RunScores as RunScores
from tiebench.runs import score_array as score_array
from tiebench.runs import score_run as score_run
from tiebench.scoring import Scores as Scores
from tiebench.scoring import score as score

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
