"""Pages of results for tests in browsers: four methods at known scores, two protocols, and hard cases."""

import itertools

from models import block, model_of, record, small, table_of

from reporting import figures, frames
from reporting.page import document, table_view
from reporting.printed.cells import cells
from tiebench import figure_style

METHODS = ["lsh", "itq", "mihash", "talr_ap"]
TABLE = small(
    name="quick",
    title="A quick table",
    description="For tests.",
    seeds=[0, 1],
    methods=METHODS,
    families={"lsh": "unsupervised", "itq": "unsupervised", "mihash": "listwise", "talr_ap": "listwise"},
    published=["paper"],
    blocks=[
        block(bits=[8, 16, 24], title="Digits"),
        block("digits_levels", "ndcg", [8, 16], title="Digits (levels)"),
    ],
)
PRINTED = {"protocol": "digits", "metric": "ap", "method": "talr_ap", "bits": 8, "value": 0.7654}
PUBLISHED = [{"source": "paper", "citation": "A. Author. A Paper.", "url": "https://example.org/paper"}]
PUBLISHED[0]["values"] = [PRINTED]
COMPARISON = {"words": "TALR-AP minus LSH", "left": 0.8, "right": 0.3, "difference": 0.5, "low": 0.4}
COMPARISON |= {"high": 0.6, "p": 0.001, "p_adjusted": 0.002, "left_lost": "1 of 10 seeds collapsed"}
COMPARISON |= {"right_lost": "", "reason": ""}
CLAIM = {"claim": "TALR-AP is ahead of LSH.", "source": "A Paper", "of": "Table 1"}
CLAIM |= {"summary": "It is.", "elsewhere": ""}
OUTCOMES = {"reproduced": "for", "not reproduced": "against", "undecided": "open"}
CLAIMS = [
    CLAIM | {"id": verdict, "verdict": verdict, "figures": [COMPARISON | {"outcome": outcome}]}
    for verdict, outcome in OUTCOMES.items()
]


def score(method, bits, seed):
    """MIHash is best at 8 bits, TALR-AP at more."""
    base = {"lsh": 0.3, "itq": 0.45, "mihash": 0.62, "talr_ap": 0.55}[method]
    return base + bits * (0.001 if method != "talr_ap" else 0.012) + 0.004 * seed


def records():
    result = []
    for asked in TABLE["blocks"]:
        for method, bits, seed in itertools.product(METHODS, asked["bits"], TABLE["seeds"]):
            value = score(method, bits, seed)
            scores = {"ap": value, "ap_min": value - 0.05, "ap_max": value + 0.03}
            scores |= {"ndcg": value, "ndcg_min": value - 0.1, "ndcg_max": value + 0.1}
            radius = range(bits + 1)
            curves = {
                "precision": [value - 0.2 * r / bits for r in radius],
                "recall": [r / bits for r in radius],
                "relevant_at": [2 * (bits - r) / bits / (bits + 1) for r in radius],
                "irrelevant_at": [2 * r / bits / (bits + 1) for r in radius],
                "cuts": [1, 10, 100, 1000],
                "precision_at": [value, value - 0.05, value - 0.1, value - 0.2],
            }
            log = [{"epoch": k, "objective": 3.0 / k, "seconds": 0.1 * k} for k in range(1, 101)]
            if method == "lsh":
                log = [{"objective": None, "seconds": 0}]
            run = {"seconds_by_part": {"fit": 10.0 * value, "encode": value}, "peak_memory_mb": 100.0}
            run |= {"hyperparameters": {"bits": bits, "rate": 0.1}, "versions": {"numpy": "2.4.1"}}
            run |= {"git_commit": "0123abcd", "device": "cpu"}
            run |= {"fingerprints": {"dataset": "d", "split": "s"}}
            more = {"curves": curves, "training": log, "run": run}
            result.append(record(method, bits, seed, scores, asked["protocol"], **more))
    return result


def drawings(table, these, kinds):
    for kind in kinds:
        described = figures.describe(kind)
        drawn = figure_style.render(figures.draw(kind, *model_of(table, these)), "svg").decode()
        yield kind, table_view.Drawing(described.title, described.caption, drawn)


def view_of(table, these, kinds=("tie_ranges",)):
    model = model_of(table, list(these), PUBLISHED)
    tidy = frames.tidy(*model)
    compared = tidy[["table", "protocol", "metric", "method", "bits", "seeds", "mean"]].copy()
    compared["ci_low"], compared["ci_high"] = compared["mean"] - 0.01, compared["mean"] + 0.01
    compared["best"], compared["difference"], compared["p_adjusted"] = "talr_ap", -0.1, 0.5
    compared["difference_low"], compared["difference_high"], compared["over"] = -0.2, 0.1, "queries and runs"
    compared["verdict"], compared["seeds_needed"] = "undecided", 5.0
    files = {"quick.csv": frames.to_csv(frames.wide(tidy, model[0])), "odd ± name.md": "# ±\n\n|a|%20  \n"}
    drawn = dict(drawings(table, these, kinds))
    return table_view.TableView(*model, cells(tidy, model[0], compared), drawn, CLAIMS, files)


FIGURES = figures.applicable(table_of(TABLE))


def write_pages(folder):
    """<name>.html in `folder`, of the names one, several, holes and bare; files/ and figures/ of "one"."""
    view = view_of(TABLE, records(), FIGURES)
    (folder / "files").mkdir()
    for name, text in view.files.items():
        (folder / "files" / name).write_text(text, encoding="utf-8")
    (folder / "figures").mkdir()
    for kind, drawing in view.figures.items():
        (folder / "figures" / f"{kind}.svg").write_text(drawing.svg, encoding="utf-8")
    strange = TABLE | {"name": "strange", "title": "Strange", "methods": ["one", "two"], "families": {}}
    strange |= {"published": [], "styles": {}, "blocks": [TABLE["blocks"][0] | {"bits": [8]}]}
    few = [one | {"method": "one"} for one in records() if one["method"] == "itq"]
    model = model_of(strange, few, [])
    bare = table_view.TableView(*model, cells(frames.tidy(*model), model[0]), {}, [], {})
    texts = {
        "one": document.page([view], "snakemake"),
        "several": document.page([view, view_of(strange, few)]),
        "holes": document.page([view_of(TABLE | {"name": "holes"}, [])]),
        "bare": document.page([bare]),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
