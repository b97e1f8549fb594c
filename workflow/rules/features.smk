# Datasets and splits -> what methods see, and the thresholds of affinities from distances.


rule check_weights:
    input:
        weights=network_weights,
    output:
        "resources/networks/{network}.json",
    log:
        "results/logs/check_weights/{network}.log",
    conda:
        "../../environment.yml"
    params:
        settings=weights_settings,
    message:
        "Network {wildcards.network}: check its weights"
    shell:
        "exec python -m workflow.scripts.check_weights --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.network} --weights {input.weights:q} --output {output:q}"


rule extract_features:
    input:
        images="resources/datasets/{dataset}/items.npy",
        weights=network_weights,
        checked=network_check,
        code=network_code,
    output:
        "resources/features/{dataset}/{network}.npy",
    log:
        "results/logs/extract_features/{dataset}/{network}.log",
    conda:
        "../../environment.yml"
    threads: CONFIGURATION["threads"]["train"]
    resources:
        mem_mb=asked("memory_mb", "train"),
        runtime=asked("minutes", "train"),
        gpu=0 if CONFIGURATION["device"] == "cpu" else 1,
    params:
        settings=network_settings,
    message:
        "Dataset {wildcards.dataset}: features of {wildcards.network}"
    shell:
        "exec python -m workflow.scripts.extract_features --log {log:q} --threads {threads}"
        " --settings {params.settings:q} --name {wildcards.dataset}/{wildcards.network}"
        " --images {input.images:q} --weights {input.weights:q} --output {output:q}"


rule normalise_features:
    input:
        seen=protocol_items,
        split="resources/protocols/{protocol}/split.npz",
        code=code("datasets.inputs"),
    output:
        "resources/protocols/{protocol}/features.npy",
    log:
        "results/logs/normalise_features/{protocol}.log",
    group:
        "prepare"
    conda:
        "../../environment.yml"
    params:
        settings=feature_settings,
    message:
        "Features of protocol {wildcards.protocol}"
    shell:
        "exec python -m workflow.scripts.normalise_features --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.protocol} --items {input.seen:q} --split {input.split:q} --output {output:q}"


rule affinity_thresholds:
    input:
        features=affinity_features,
        labels=lambda wildcards: f"{dataset_folder(wildcards)}/labels.npy",
        split="resources/protocols/{protocol}/split.npz",
        code=lambda wildcards: code("datasets.affinity", affinity_module(wildcards)),
    output:
        "resources/protocols/{protocol}/affinity.json",
    log:
        "results/logs/affinity_thresholds/{protocol}.log",
    group:
        "prepare"
    conda:
        "../../environment.yml"
    params:
        settings=affinity_settings,
        dataset=dataset_folder,
    message:
        "Affinity of protocol {wildcards.protocol}"
    shell:
        "exec python -m workflow.scripts.affinity_thresholds --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.protocol} --dataset {params.dataset:q} --features {input.features:q}"
        " --split {input.split:q} --output {output:q}"
