# Training sets -> hyper-parameters: searches on validation parts of them, results/tuning/<name>.yaml.


rule tune_method:
    input:
        seen=of(PLAN.run_items),
        weights=sources(PLAN.run_weights),
        checked=of(PLAN.run_check),
        affinity=of(PLAN.affinity_files),
        split=of(SEARCHES.split),
        labels=of(PLAN.labels),
    output:
        "results/tuning/{tuning}/{protocol}/{method}/{bits}.json",
    log:
        "results/logs/tune_method/{tuning}/{protocol}/{method}/{bits}.log",
    conda:
        "../../environment.yml"
    threads: PLAN["threads"]["train"]
    resources:
        mem_mb=resource("memory_mb", "train"),
        runtime=resource("minutes", "train"),
        gpu=of(PLAN.gpus),
    params:
        settings=settings(SEARCHES.settings),
        code=code(SEARCHES.code),
        threads=PLAN["threads"]["train"],
        dataset=of(PLAN.dataset_folder),
        folder=subpath(input.split, parent=True),
    message:
        "Tuning {wildcards.tuning}: {wildcards.protocol}, {wildcards.method}, {wildcards.bits} bits"
    shell:
        "exec python -m workflow.scripts.tune_method --log {log:q} --threads {params.threads}"
        " --settings {params.settings:q} --name {wildcards.tuning} --protocol {wildcards.protocol}"
        " --method {wildcards.method} --bits {wildcards.bits} --dataset {params.dataset:q}"
        " --protocol-folder {params.folder:q} --items {input.seen:q} --weights {input.weights:q}"
        " --output {output:q}"


rule collect_tuning:
    input:
        of(SEARCHES.choices),
    output:
        multiext("results/tuning/{tuning}", ".yaml", ".csv"),
    log:
        "results/logs/collect_tuning/{tuning}.log",
    conda:
        "../../environment.yml"
    params:
        settings=settings(SEARCHES.collected),
        code=code(PLAN.code, "workflow.scripts.collect_tuning", "workflow.tuning.files"),
        stem=subpath(output[0], strip_suffix=".yaml"),
    message:
        "Hyper-parameters of tuning {wildcards.tuning}"
    shell:
        "exec python -m workflow.scripts.collect_tuning --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.tuning} --stem {params.stem:q}"
