# Sources -> datasets -> splits: everything that follows from a dataset alone, in resources/.


rule download:
    output:
        "resources/downloads/{file}",
    log:
        "results/logs/download/{file}.log",
    wildcard_constraints:
        # A file that exists is never an output: Snakemake would remove it first.
        file=one_of(PLAN.downloads),
    retries: 0  # the download itself retries, and resumes
    conda:
        "../../environment.yml"
    params:
        # Not compared: what was made of a file that has been removed stays valid if a mirror has moved.
        settings=settings(PLAN.download_settings, compared=False),
    message:
        "Download {wildcards.file}"
    shell:
        "exec python -m workflow.scripts.download --log {log:q} --settings {params.settings:q}"
        " --output {output:q}"


rule load_dataset:
    input:
        sources=sources(PLAN.dataset_sources),
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
        settings=settings(PLAN.dataset_settings),
        code=code(PLAN.dataset_code),
        folder=subpath(output.card, parent=True),
    message:
        "Dataset {wildcards.dataset}"
    shell:
        "exec python -m workflow.scripts.load_dataset --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.dataset} --folder {params.folder:q} --sources {input.sources:q}"


rule split_protocol:
    input:
        card=of(PLAN.dataset_card),
        labels=of(PLAN.labels),
        given=of(PLAN.given_split),
        vectors=of(PLAN.dataset_items),
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
        settings=settings(PLAN.split_settings),
        code=code(PLAN.split_code),
        dataset=of(PLAN.dataset_folder),
        folder=subpath(output.card, parent=True),
    message:
        "Split of protocol {wildcards.protocol}"
    shell:
        "exec python -m workflow.scripts.split_protocol --log {log:q} --settings {params.settings:q}"
        " --name {wildcards.protocol} --dataset {params.dataset:q} --folder {params.folder:q}"
