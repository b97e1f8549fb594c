# Training sets -> hyper-parameters: search on a validation part, results/tuning/<name>.yaml.


rule tune_method:
    input:
        seen=of(PLAN.tuning_items),
        weights=of(PLAN.tuning_weights),
        checked=of(PLAN.tuning_check),
        affinity=of(PLAN.tuning_affinity),
        split=of(PLAN.tuning_file, name="split.npz"),
        code=of(PLAN.tuning_code),
    output:
        trials="results/tuning/{tuning}/{method}/{bits}.csv",
        chosen="results/tuning/{tuning}/{method}/{bits}.json",
    log:
        "results/logs/tune_method/{tuning}/{method}/{bits}.log",
    conda:
        "../../environment.yml"
    threads: PLAN["threads"]["train"]
    resources:
        mem_mb=resource("memory_mb", "train"),
        runtime=resource("minutes", "train"),
        gpu=of(PLAN.gpus),
    params:
        settings=settings(PLAN.tuning_settings),
        dataset=of(PLAN.tuning_dataset),
        folder=subpath(input.split, parent=True),
    message:
        "Tuning {wildcards.tuning}: {wildcards.method}, {wildcards.bits} bits"
    shell:
        "exec python -m workflow.scripts.tune_method --log {log:q} --threads {threads}"
        " --settings {params.settings:q} --name {wildcards.tuning} --method {wildcards.method}"
        " --bits {wildcards.bits} --dataset {params.dataset:q} --protocol-folder {params.folder:q}"
        " --items {input.seen:q} --weights {input.weights:q}"
        " --output {output.trials:q} --chosen {output.chosen:q}"


rule collect_tuning:
    input:
        of(PLAN.tuning_choices),
    output:
        "results/tuning/{tuning}.yaml",
    log:
        "results/logs/collect_tuning/{tuning}.log",
    conda:
        "../../environment.yml"
    params:
        settings=settings(PLAN.collected_tuning),
    message:
        "Hyper-parameters of tuning {wildcards.tuning}"
    shell:
        "exec python -m workflow.scripts.collect_tuning --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.tuning} --output {output:q}"
