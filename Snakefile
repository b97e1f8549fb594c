# TieBench. What is run is in config/, how a job is run in profiles/, the stages in workflow/rules/.
#
#   snakemake --cores all                        the quick report
#   snakemake --cores all results/<table>.csv    a table of config/tables/ or of --configfile
#   snakemake --cores all results/report.html    the page of all tables that config.yaml names under report
#   snakemake -n ...                             what would run, and why

from snakemake.utils import min_version

min_version("9.19")


include: "workflow/rules/common.smk"


localrules:
    quick,


rule quick:
    input:
        multiext("results/quick", ".csv", ".tidy.csv", ".statistics.csv", ".md", ".tex"),
        multiext("results/figures/tie_ranges_quick", ".pdf", ".svg", ".png"),
        "results/report.html",
    message:
        "The quick report: results/report.html"


include: "workflow/rules/data.smk"
include: "workflow/rules/features.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/scores.smk"
include: "workflow/rules/publish.smk"
include: "workflow/rules/tuning.smk"
