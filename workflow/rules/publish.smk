# Scores -> tables, figures and the page.


rule collect_table:
    input:
        runs=lambda wildcards: table_runs(wildcards, "run.json"),
        scores=lambda wildcards: table_runs(wildcards, "scores.json"),
        code=code("reporting.claims", "reporting.markdown", "reporting.latex"),
    output:
        multiext("results/{table}", ".csv", ".tidy.csv", ".statistics.csv", ".claims.csv", ".md", ".tex"),
    log:
        "results/logs/collect_table/{table}.log",
    group:
        "publish"
    conda:
        "../../environment.yml"
    params:
        settings=lambda wildcards: as_json(table_settings(wildcards)),
        stem=subpath(output[0], strip_suffix=".csv"),
    message:
        "Table {wildcards.table}"
    shell:
        "exec python -m workflow.scripts.collect_table --log {log:q} --settings {params.settings:q}"
        " --stem {params.stem:q}"


rule paper_tie_ranges:
    input:
        multiext("results/figures/tie_ranges_figure4", ".pdf", ".svg", ".png"),
    output:
        multiext("results/figures/tie_ranges", ".pdf", ".svg", ".png"),
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
        runs=lambda wildcards: table_runs(wildcards, "run.json"),
        scores=lambda wildcards: table_runs(wildcards, "scores.json"),
        code=lambda wildcards: code(f"reporting.figures.{wildcards.figure}"),
    output:
        multiext("results/figures/{figure}_{table}", ".pdf", ".svg", ".png"),
    log:
        "results/logs/plot_figure/{figure}_{table}.log",
    wildcard_constraints:
        figure=one_of(FIGURES),
    group:
        "publish"
    conda:
        "../../environment.yml"
    params:
        settings=lambda wildcards: as_json(table_settings(wildcards)),
        stem=subpath(output[0], strip_suffix=".pdf"),
    message:
        "Figure {wildcards.figure} of table {wildcards.table}"
    shell:
        "exec python -m workflow.scripts.plot_figure --log {log:q} --settings {params.settings:q}"
        " --figure {wildcards.figure} --stem {params.stem:q}"


rule collect_gallery:
    input:
        gallery_inputs,
        code=code("workflow.gallery_data"),
    output:
        "results/galleries/{table}.npz",
    log:
        "results/logs/collect_gallery/{table}.log",
    group:
        "publish"
    conda:
        "../../environment.yml"
    params:
        settings=gallery_settings,
    message:
        "Gallery of table {wildcards.table}"
    shell:
        "exec python -m workflow.scripts.collect_gallery --log {log:q} --settings {params.settings:q}"
        " --output {output:q}"


rule plot_gallery:
    input:
        gallery="results/galleries/{table}.npz",
        code=code("reporting.gallery"),
    output:
        multiext("results/figures/gallery_{table}", ".pdf", ".svg", ".png"),
    log:
        "results/logs/plot_gallery/{table}.log",
    group:
        "publish"
    conda:
        "../../environment.yml"
    params:
        settings=lambda wildcards: as_json(table_settings(wildcards)),
        stem=subpath(output[0], strip_suffix=".pdf"),
    message:
        "Figure of the gallery of table {wildcards.table}"
    shell:
        "exec python -m workflow.scripts.plot_gallery --log {log:q} --settings {params.settings:q}"
        " --gallery {input.gallery:q} --stem {params.stem:q}"


rule render_page:
    input:
        runs=lambda wildcards: page_files(wildcards, "run.json"),
        scores=lambda wildcards: page_files(wildcards, "scores.json"),
        galleries=page_galleries,
        code=code(
            "reporting.page",
            "reporting.gallery",
            *[f"reporting.figures.{name}" for name in FIGURES],
        ),
        templates=[os.path.relpath(file) for file in PAGE_PARTS],
    output:
        "results/{page}.html",
    log:
        "results/logs/render_page/{page}.log",
    group:
        "publish"
    conda:
        "../../environment.yml"
    params:
        settings=page_settings,
    message:
        "Page results/{wildcards.page}.html"
    shell:
        "exec python -m workflow.scripts.render_page --log {log:q} --settings {params.settings:q}"
        " --output {output:q}"
