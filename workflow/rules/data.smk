# Sources -> datasets -> splits: everything that follows from a dataset alone, in resources/.


rule download:
    output:
        "resources/downloads/{file}",
    log:
        "results/logs/download/{file}.log",
    wildcard_constraints:
        # A file that is there is never made again: Snakemake would remove it first.
        file=one_of(TO_DOWNLOAD),
    retries: 0  # it tries again by itself, from where it was
    conda:
        "../../environment.yml"
    params:
        settings=download_settings,
    message:
        "Download {wildcards.file}"
    shell:
        "exec python -m workflow.scripts.download --log {log:q} --settings {params.settings:q}"
        " --output {output:q}"


rule refuse_missing_source:
    output:
        "{source}",
    log:
        "results/logs/refuse_missing_source/{source}.log",
    wildcard_constraints:
        source=one_of(path for path, _, _ in MISSING),
    priority: refuse_missing
    conda:
        "../../environment.yml"
    message:
        "Never run: its priority ends with all that is missing"
    shell:
        "exit 1"


rule load_dataset:
    input:
        sources=dataset_sources,
        code=lambda wildcards: code(f"datasets.{entry('datasets', wildcards.dataset)['loader']}"),
    output:
        vectors="resources/datasets/{dataset}/items.npy",
        labels="resources/datasets/{dataset}/labels.npy",
        given="resources/datasets/{dataset}/given_split.npy",
        card="resources/datasets/{dataset}/dataset.json",
    log:
        "results/logs/load_dataset/{dataset}.log",
    group:
        "prepare"
    conda:
        "../../environment.yml"
    params:
        settings=dataset_settings,
        folder=subpath(output.card, parent=True),
    message:
        "Dataset {wildcards.dataset}"
    shell:
        "exec python -m workflow.scripts.load_dataset --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.dataset} --folder {params.folder:q} --sources {input.sources:q}"


rule split_protocol:
    input:
        card=lambda wildcards: (entry("protocols", wildcards.protocol), checked_dataset_card(wildcards))[1],
        labels=lambda wildcards: f"{dataset_folder(wildcards)}/labels.npy",
        given=lambda wildcards: f"{dataset_folder(wildcards)}/given_split.npy",
        code=lambda wildcards: code("datasets.splits", split_module(wildcards)),
    output:
        split="resources/protocols/{protocol}/split.npz",
        card="resources/protocols/{protocol}/split.json",
    log:
        "results/logs/split_protocol/{protocol}.log",
    group:
        "prepare"
    conda:
        "../../environment.yml"
    params:
        settings=split_settings,
        dataset=dataset_folder,
        folder=subpath(output.card, parent=True),
    message:
        "Split of protocol {wildcards.protocol}"
    shell:
        "exec python -m workflow.scripts.split_protocol --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.protocol} --dataset {params.dataset:q} --folder {params.folder:q}"
