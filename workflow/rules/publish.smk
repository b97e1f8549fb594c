# Scores -> tables, figures and the page.


rule collect_table:
    input:
        runs=of(PLAN.table_runs, names=("run.json", "scores.json", "per_query.npz")),
        uncoded=of(PLAN.uncoded_files),
    output:
        report(
            "results/{table}.csv",
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{table}", "file": "scores"},
        ),
        report(
            "results/{table}.claims.csv",
            caption="../report/claims.rst",
            category="Tables",
            labels={"table": "{table}", "file": "claims"},
        ),
        multiext("results/{table}", ".tidy.csv", ".statistics.csv", ".health.csv", ".md", ".tex", ".json"),
    log:
        "results/logs/collect_table/{table}.log",
    group:
        "publish"
    conda:
        "../../environment.yml"
    params:
        settings=settings(PLAN.table_settings),
        code=code(
            PLAN.code,
            "workflow.scripts.collect_table",
            "reporting.claims.verdicts",
            "reporting.printed.health",
            "reporting.printed.table_files",
        ),
        stem=subpath(output[0], strip_suffix=".csv"),
    message:
        "Table {wildcards.table}"
    shell:
        "exec python -m workflow.scripts.collect_table --log {log:q} --settings {params.settings:q}"
        " --stem {params.stem:q}"


rule paper_tie_ranges:
    input:
        multiext("results/figures/tie_ranges_figure4", *FIGURE_ENDINGS),
    output:
        multiext("results/figures/tie_ranges", *FIGURE_ENDINGS),
    log:
        "results/logs/paper_tie_ranges.log",
    conda:
        "../../environment.yml"
    params:
        folder=subpath(output[0], parent=True),
    message:
        "The paper's figure of tie ranges"
    shell:
        "for file in {input:q}; do"
        ' cp "$file" {params.folder:q}/"tie_ranges.${{file##*.}}"; done > {log:q} 2>&1'


rule plot_figure:
    input:
        runs=of(PAGES.figure_runs),
    output:
        report(
            "results/figures/{figure}_{table}.svg",
            caption="../report/figure.rst",
            category="Figures",
            labels={"table": "{table}", "figure": "{figure}"},
        ),
        multiext("results/figures/{figure}_{table}", ".pdf", ".png"),
    log:
        "results/logs/plot_figure/{figure}_{table}.log",
    wildcard_constraints:
        figure=one_of(figures.names()),
    group:
        "publish"
    conda:
        "../../environment.yml"
    params:
        settings=settings(PLAN.table_settings),
        code=code(PAGES.figure_code),
        stem=subpath(output[0], strip_suffix=".svg"),
    message:
        "Figure {wildcards.figure} of table {wildcards.table}"
    shell:
        "exec python -m workflow.scripts.plot_figure --log {log:q} --settings {params.settings:q}"
        " --figure {wildcards.figure} --stem {params.stem:q}"


rule plot_gallery:
    input:
        of(PAGES.gallery_files),
    output:
        report(
            "results/figures/gallery_{table}.svg",
            caption="../report/gallery.rst",
            category="Figures",
            labels={"table": "{table}", "figure": "gallery"},
        ),
        multiext("results/figures/gallery_{table}", ".pdf", ".png"),
    log:
        "results/logs/plot_gallery/{table}.log",
    group:
        "publish"
    conda:
        "../../environment.yml"
    params:
        settings=settings(PAGES.gallery_settings),
        code=code(
            PLAN.code,
            "workflow.scripts.plot_gallery",
            "reporting.page.gallery",
            "workflow.stages.gallery_data",
        ),
        stem=subpath(output[0], strip_suffix=".svg"),
    message:
        "Gallery of table {wildcards.table}"
    shell:
        "exec python -m workflow.scripts.plot_gallery --log {log:q} --settings {params.settings:q}"
        " --stem {params.stem:q}"


rule render_page:
    input:
        published=of(PAGES.page_published),
        runs=of(PAGES.page_runs),
        templates=PAGES.page_templates(),
    output:
        "results/{page}.html",
    log:
        "results/logs/render_page/{page}.log",
    group:
        "publish"
    conda:
        "../../environment.yml"
    params:
        settings=settings(PAGES.page_settings, configfiles=snakemake_internals.given_configfiles(workflow)),
        code=code(
            PLAN.code,
            "workflow.scripts.render_page",
            "reporting.page.document",
            "reporting.published",
            "reporting.page.gallery",
        ),
    message:
        "Page results/{wildcards.page}.html"
    shell:
        "exec python -m workflow.scripts.render_page --log {log:q} --settings {params.settings:q}"
        " --output {output:q}"


rule refuse_unknown_result:
    input:
        of(targets.refuse_unknown, plan=PLAN),
    output:
        "results/{unknown}",
    log:
        "results/logs/refuse_unknown_result/{unknown}.log",
    wildcard_constraints:
        unknown=targets.unknown_results(PLAN),
    conda:
        "../../environment.yml"
    message:
        "Never run: its input function ends with the known names"
    shell:
        "exit 1"
