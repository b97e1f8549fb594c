"""Which page stands where in the site: methods, modules and results are found, others listed."""

from collections.abc import Mapping

from methods.base.catalogue import FAMILIES, MethodMetadata
from reporting.tables.titles import family_title
from workflow.documentation import api_pages, leaderboard_pages, method_pages
from workflow.documentation.api_pages import toctree

# Pages that introduce a section and list its pages: path among the site's sources -> title, text, and page ->
# what it holds. Sphinx reports a page of docs/ that nothing lists.
SECTIONS: dict[str, tuple[str, str, dict[str, str]]] = {
    "guide.md": (
        "User guide",
        "Score codes and rankings, compare them, and run the benchmark.",
        {
            "use-the-library.md": "metrics and losses in your own code",
            "metrics.md": "definition of each metric",
            "compare-your-codes.md": "codes of any program against the leaderboard: rank and differences",
            "check-a-split.md": "queries in the database, and other faults of a split",
            "verdicts.md": "how differences are tested, and how often that errs",
            "health.md": "what codes make of their bits, and when they count as collapsed",
            "use-codes-elsewhere.md": "codes in FAISS, PostgreSQL, TREC tools and ranx; nearest items",
            "large-databases.md": "databases in many files, on a Dask cluster, in object storage",
            "score-rankings.md": "exact metrics of TREC runs and other rankings with ties",
            "make-features.md": "features of images or texts by pretrained models",
            "text-embeddings.md": "binary codes of text: prefixes, asymmetric search, rescoring",
            "protocols.md": "seen and unseen classes, transfer, few labels: what each asks",
            "tuning.md": "one rule and one budget for hyper-parameters",
            "table1.md": "what Table 1 of the paper costs, stage by stage",
            "cluster.md": "run on Slurm",
            "configuration.md": "every key of the configuration",
            "result-files.md": "files that runs write",
            "glossary.md": "words of tables, configuration and code",
        },
    ),
    "examples.md": (
        "Examples",
        "Short notebooks with their outputs; each runs in less than a minute.",
        {
            "example-train-with-talr.md": "train a network with TALR's loss in plain PyTorch",
            "example-score-your-codes.md": "score arrays and files, several labels, AP@K, ranges, a plot",
            "example-add-a-method.md": "write a method, test it, compare it with a baseline",
            "example-check-a-claim.md": "a table that judges claims, and its page",
            "notebooks.md": "open the examples in Jupyter or Colab",
        },
    ),
    "extend.md": (
        "How to extend",
        "Each addition touches one place: a file, or an entry of a configuration file.",
        {
            "add-a-method.md": "a file with one class",
            "add-a-dataset.md": "features, images, or a loader of your own",
            "add-a-protocol.md": "split, affinity, input, network",
            "add-a-table.md": "methods, code lengths and seeds; statistics, claims, figures",
            "add-a-figure.md": "a file that draws a table",
            "add-a-metric.md": "an entry of the table of metrics",
        },
    ),
    "results-overview.md": (
        "Results",
        "What was measured, and what these measurements can and cannot say.",
        {
            "findings.md": "what was learnt, in five minutes",
            leaderboard_pages.INDEX: leaderboard_pages.DESCRIPTION,
            "results.md": "a page for each protocol: tables, verdicts on claims, figures, limits",
            "leaderboard.md": "files of measured scores, and how to publish them",
            "performance.md": "speed and memory against other libraries",
            "differences.md": "differences from the papers; what was never run",
        },
    ),
    "about.md": (
        "About",
        "How to cite TieBench, and what changed.",
        {"cite.md": "how to cite", "changelog.md": "changes, and how to upgrade"},
    ),
    "development.md": (
        "Development",
        "How the suite is built, tested and measured: for those who change it.",
        {
            "contributing.md": "commands, layers, tests",
            "development/architecture.md": "layers, folders, the way of a run",
            "development/trust.md": "what is tested",
            "development/generated-parts.md": "comments that put measured scores into pages",
            "development/performance.md": "where the time goes, and how near to the limits",
        },
    ),
}
METHODS = "methods.md"
# The bar at the top of every page.
TOP = ("quick-start.md", "examples.md", "guide.md", "extend.md", METHODS, "results-overview.md",
       api_pages.INDEX, "faq.md", "about.md", "development.md")  # fmt: skip


def section_pages() -> dict[str, str]:
    """The pages that introduce sections. A link without a text shows the title of its page."""
    made = {}
    for page, (title, text, listed) in SECTIONS.items():
        lines = "\n".join(f"- [](./{one}): {holds}" for one, holds in listed.items())
        made[page] = "\n\n".join([f"# {title}", text, lines, toctree(listed)]) + "\n"
    return made


def trees(catalogue: Mapping[str, MethodMetadata]) -> dict[str, str]:
    """Page -> the trees that it has at its end: of the home page, of methods by family, of results."""
    families = []
    for family in FAMILIES:
        found = [about for about in catalogue.values() if about.family == family]
        entries = [f"{about.title} <{method_pages.place(about.name)}>" for about in found]
        families += [toctree(entries, caption=family_title(family))] * bool(found)
    return {
        "index.md": toctree([f"FAQ <{page}>" if page == "faq.md" else page for page in TOP]),
        METHODS: "\n\n".join(families),
        "results.md": toctree(["results/*"], glob=True),
    }
