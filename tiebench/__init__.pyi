from tiebench import affinities as affinities
from tiebench import codes as codes
from tiebench import comparison as comparison
from tiebench import counting as counting
from tiebench import diagnostics as diagnostics
from tiebench import leaderboards as leaderboards
from tiebench import losses as losses
from tiebench import metrics as metrics
from tiebench import prefixes as prefixes
from tiebench import rankings as rankings
from tiebench import runs as runs
from tiebench import scoring as scoring
from tiebench import search as search
from tiebench import splits as splits
from tiebench import training as training
from tiebench._version import __version__ as __version__
from tiebench.codes import collapse as collapse
from tiebench.codes import inputs as inputs
from tiebench.codes import packing as packing
from tiebench.counting import distributed as distributed
from tiebench.counting import histograms as histograms
from tiebench.counting import on_device as on_device
from tiebench.counting import parts as parts
from tiebench.diagnostics import Health as Health
from tiebench.diagnostics import health as health
from tiebench.losses import relaxed as relaxed
from tiebench.rankings import exact as exact
from tiebench.rankings import radius as radius
from tiebench.rankings import ties as ties
from tiebench.runs.scores import RunScores as RunScores
from tiebench.runs.scores import score_array as score_array
from tiebench.runs.scores import score_run as score_run
from tiebench.scoring import Scores as Scores
from tiebench.scoring import score as score
from tiebench.search import export as export
from tiebench.search import lookup as lookup
from tiebench.search import neighbours as neighbours
from tiebench.search import rescoring as rescoring
from tiebench.search.lookup import lookup_cost as lookup_cost

_FUNCTIONS: dict[str, str]
_MODULES: dict[str, str]

__all__ = [
    "Health",
    "RunScores",
    "Scores",
    "__version__",
    "affinities",
    "codes",
    "collapse",
    "comparison",
    "counting",
    "diagnostics",
    "distributed",
    "exact",
    "export",
    "health",
    "histograms",
    "inputs",
    "leaderboards",
    "lookup",
    "lookup_cost",
    "losses",
    "metrics",
    "neighbours",
    "on_device",
    "packing",
    "parts",
    "prefixes",
    "radius",
    "rankings",
    "relaxed",
    "rescoring",
    "runs",
    "score",
    "score_array",
    "score_run",
    "scoring",
    "search",
    "splits",
    "ties",
    "training",
]
