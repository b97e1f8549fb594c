# Datasets and splits -> what methods see, and the thresholds of affinities from distances.


rule check_weights:
    input:
        weights=sources(PLAN.network_weights),
    output:
        "resources/networks/{network}.json",
    log:
        "results/logs/check_weights/{network}.log",
    conda:
        "../../environment.yml"
    params:
        settings=settings(PLAN.weights_settings),
    message:
        "Network {wildcards.network}: check its weights"
    shell:
        "exec python -m workflow.scripts.check_weights --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.network} --weights {input.weights:q} --output {output:q}"


rule extract_features:
    input:
        images="resources/datasets/{dataset}/items.npy",
        weights=sources(PLAN.network_weights),
        checked=of(PLAN.network_check),
    output:
        "resources/features/{dataset}/{network}.npy",
    log:
        "results/logs/extract_features/{dataset}/{network}.log",
    conda:
        "../../environment.yml"
    threads: PLAN["threads"]["train"]
    resources:
        mem_mb=resource("memory_mb", "train"),
        runtime=resource("minutes", "train"),
        gpu=0 if PLAN["device"] == "cpu" else 1,
    params:
        settings=settings(PLAN.network_settings),
        code=code(PLAN.network_code),
        threads=PLAN["threads"]["train"],
    message:
        "Dataset {wildcards.dataset}: features of {wildcards.network}"
    shell:
        "exec python -m workflow.scripts.extract_features --log {log:q} --threads {params.threads}"
        " --settings {params.settings:q} --name {wildcards.dataset}/{wildcards.network}"
        " --images {input.images:q} --weights {input.weights:q} --output {output:q}"


# A group of its own: between the group of splits and these jobs features may have to be extracted, and a group
# that depends on itself by way of a job outside of it can never start.
rule normalise_features:
    input:
        seen=of(PLAN.protocol_items),
        split="resources/protocols/{protocol}/split.npz",
    output:
        "resources/protocols/{protocol}/features.npy",
    log:
        "results/logs/normalise_features/{protocol}.log",
    group:
        "features"
    conda:
        "../../environment.yml"
    params:
        settings=settings(PLAN.feature_settings),
        code=code(PLAN.code, "workflow.scripts.normalise_features", "datasets.inputs"),
    message:
        "Features of protocol {wildcards.protocol}"
    shell:
        "exec python -m workflow.scripts.normalise_features --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.protocol} --items {input.seen:q} --split {input.split:q} --output {output:q}"


rule affinity_thresholds:
    input:
        features="resources/protocols/{protocol}/features.npy",
        labels=of(PLAN.labels),
        split="resources/protocols/{protocol}/split.npz",
    output:
        "resources/protocols/{protocol}/affinity.json",
    log:
        "results/logs/affinity_thresholds/{protocol}.log",
    group:
        "features"
    conda:
        "../../environment.yml"
    params:
        settings=settings(PLAN.affinity_settings),
        code=code(PLAN.thresholds_code),
        dataset=of(PLAN.dataset_folder),
    message:
        "Affinity of protocol {wildcards.protocol}"
    shell:
        "exec python -m workflow.scripts.affinity_thresholds --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.protocol} --dataset {params.dataset:q}"
        " --split {input.split:q} --output {output:q}"
