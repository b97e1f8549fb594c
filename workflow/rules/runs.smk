# Training sets -> codes: one run per protocol, method, code length and seed. A job serves a group of seeds.


for protocols, seeds in seed_groups():

    rule:
        name:
            f"train_and_encode_{'_'.join(map(str, [seeds[0], *seeds[1:][-1:]]))}_{protocols.split('|')[0]}"
        input:
            features="resources/protocols/{protocol}/features.npy",
            affinity="resources/protocols/{protocol}/affinity.json",
            split="resources/protocols/{protocol}/split.npz",
            labels=lambda wildcards: f"{dataset_folder(wildcards)}/labels.npy",
            code=method_code,
        output:
            expand(
                "results/runs/{{protocol}}/{{method}}/{{bits}}/{seed}/{file}",
                seed=seeds,
                file=["codes.npz", "model.npz", "training.jsonl", "run.json"],
            ),
        log:
            f"results/logs/train_and_encode/{{protocol}}/{{method}}/{{bits}}/{seeds[0]}.log",
        benchmark:
            f"results/benchmarks/train_and_encode/{{protocol}}/{{method}}/{{bits}}/{seeds[0]}.tsv"
        wildcard_constraints:
            protocol=protocols,
        conda:
            "../../environment.yml"
        threads: CONFIGURATION["threads"]["train"]
        resources:
            mem_mb=4000,
            gpu=0 if CONFIGURATION["device"] == "cpu" else 1,
        params:
            settings=run_settings,
            dataset=dataset_folder,
            folder=subpath(input.split, parent=True),
            runs=subpath(output[0], ancestor=2),
            seeds=seeds,
        message:
            "{wildcards.protocol}: train {wildcards.method}, {wildcards.bits} bits"
        shell:
            "exec python -m workflow.scripts.train_and_encode --log {log:q} --threads {threads}"
            " --settings {params.settings:q} --protocol {wildcards.protocol} --method {wildcards.method}"
            " --bits {wildcards.bits} --seeds {params.seeds} --dataset {params.dataset:q}"
            " --protocol-folder {params.folder:q} --runs {params.runs:q}"


rule refuse_unknown_protocol:
    input:
        lambda wildcards: entry("protocols", wildcards.protocol)["dataset"],
    output:
        "results/runs/{protocol}/{method}/{bits}/{seed}/{file}",
    log:
        "results/logs/refuse_unknown_protocol/{protocol}/{method}/{bits}/{seed}/{file}.log",
    wildcard_constraints:
        protocol=UNKNOWN_PROTOCOL,
        file=r"[a-z_]+\.[a-z]+",
    conda:
        "../../environment.yml"
    message:
        "Never run: its input function ends with the known names"
    shell:
        "exit 1"
