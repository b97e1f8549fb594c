# Training sets -> hyper-parameters: search on a validation part, results/tuning/<name>.yaml.


rule tune_method:
    input:
        seen=tuned(run_items),
        weights=tuned(of_trained(network_weights)),
        checked=tuned(of_trained(network_check)),
        distances=tuned(affinity_features),
        affinity=tuning_file("affinity.json"),
        split=tuning_file("split.npz"),
        code=method_code,
    output:
        trials="results/tuning/{tuning}/{method}/{bits}.csv",
        chosen="results/tuning/{tuning}/{method}/{bits}.json",
    log:
        "results/logs/tune_method/{tuning}/{method}/{bits}.log",
    conda:
        "../../environment.yml"
    threads: CONFIGURATION["threads"]["train"]
    resources:
        mem_mb=asked("memory_mb", "train"),
        runtime=asked("minutes", "train"),
        gpu=gpus,
    params:
        settings=tuning_settings,
        dataset=tuning_dataset,
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
        tuning_choices,
    output:
        "results/tuning/{tuning}.yaml",
    log:
        "results/logs/collect_tuning/{tuning}.log",
    conda:
        "../../environment.yml"
    params:
        settings=lambda wildcards: as_json({"tuning": entry("tuning", wildcards.tuning)}),
    message:
        "Hyper-parameters of tuning {wildcards.tuning}"
    shell:
        "exec python -m workflow.scripts.collect_tuning --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.tuning} --chosen {input:q} --output {output:q}"
