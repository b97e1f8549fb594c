# Datasets and splits -> what methods see, and the thresholds of affinities from distances.


rule extract_features:
    input:
        dataset=lambda wildcards: f"{dataset_folder(wildcards)}/items.npy",
        labels=lambda wildcards: f"{dataset_folder(wildcards)}/labels.npy",
        split="resources/protocols/{protocol}/split.npz",
        code=code("datasets.inputs", "datasets.affinity"),
    output:
        features="resources/protocols/{protocol}/features.npy",
        affinity="resources/protocols/{protocol}/affinity.json",
    log:
        "results/logs/extract_features/{protocol}.log",
    conda:
        "../../environment.yml"
    params:
        settings=feature_settings,
        dataset=dataset_folder,
        folder=subpath(output.features, parent=True),
    message:
        "Features of protocol {wildcards.protocol}"
    shell:
        "exec python -m workflow.scripts.extract_features --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.protocol} --dataset {params.dataset:q} --folder {params.folder:q}"
