# Codes -> scores, per query and averaged.


for job in run_jobs(in_parts=False):

    rule:
        name:
            f"score_codes{job.name}"
        input:
            runs=expand(
                "results/runs/{{protocol}}/{{method}}/{run}/{file}",
                run=job.runs,
                file=["codes.npz", "run.json"],
            ),
            distances=affinity_features,
            affinity="resources/protocols/{protocol}/affinity.json",
            split="resources/protocols/{protocol}/split.npz",
            labels=lambda wildcards: f"{dataset_folder(wildcards)}/labels.npy",
            code=code("tiebench.scoring", "tiebench._popcount", "tiebench._ap_at_k"),
        output:
            expand(
                "results/runs/{{protocol}}/{{method}}/{run}/{file}",
                run=job.runs,
                file=["scores.json", "per_query.npz"],
            ),
        log:
            f"results/logs/score_codes/{{protocol}}/{{method}}/{job.log}.log",
        wildcard_constraints:
            protocol=job.protocols,
            method=job.methods,
        group:
            "score"
        conda:
            "../../environment.yml"
        threads: CONFIGURATION["threads"]["score"]
        resources:
            mem_mb=asked("memory_mb", "score"),
            runtime=asked("minutes", "score"),
        params:
            settings=score_settings,
            dataset=dataset_folder,
            protocol=subpath(input.split, parent=True),
            folder=method_folder,
            runs=runs_of_job,
        message:
            f"{{wildcards.protocol}}: score {{wildcards.method}}, {job.words}"
        shell:
            "exec python -m workflow.scripts.score_codes --log {log:q} --threads {threads}"
            " --settings {params.settings:q} --runs {params.runs} --dataset {params.dataset:q}"
            " --protocol-folder {params.protocol:q} --folder {params.folder:q}"


rule count_part:
    input:
        codes="results/runs/{protocol}/{method}/{bits}/{seed}/codes.npz",
        run="results/runs/{protocol}/{method}/{bits}/{seed}/run.json",
        distances=affinity_features,
        affinity="resources/protocols/{protocol}/affinity.json",
        split="resources/protocols/{protocol}/split.npz",
        labels=lambda wildcards: f"{dataset_folder(wildcards)}/labels.npy",
        code=code("tiebench.parts", "tiebench._popcount"),
    output:
        temp("results/runs/{protocol}/{method}/{bits}/{seed}/parts/{part}.npz"),
    log:
        "results/logs/count_part/{protocol}/{method}/{bits}/{seed}/{part}.log",
    wildcard_constraints:
        protocol=one_of(IN_PARTS),
        part=r"\d+",
    group:
        "score"
    conda:
        "../../environment.yml"
    threads: CONFIGURATION["threads"]["score"]
    resources:
        mem_mb=asked("memory_mb", "score"),
        runtime=asked("minutes", "score"),
    params:
        settings=score_settings,
        dataset=dataset_folder,
        protocol=subpath(input.split, parent=True),
        run=subpath(input.run, parent=True),
        part=lambda wildcards: f"{wildcards.part}/{database_parts(wildcards)}",
    message:
        "{wildcards.protocol}: count {wildcards.method}, {wildcards.bits} bits, seed {wildcards.seed}, part {params.part}"
    shell:
        "exec python -m workflow.scripts.count_part --log {log:q} --threads {threads}"
        " --settings {params.settings:q} --dataset {params.dataset:q} --protocol-folder {params.protocol:q}"
        " --run {params.run:q} --part {params.part} --output {output:q}"


rule score_parts:
    input:
        run="results/runs/{protocol}/{method}/{bits}/{seed}/run.json",
        parts=lambda wildcards: [
            f"results/runs/{{protocol}}/{{method}}/{{bits}}/{{seed}}/parts/{part}.npz"
            for part in range(1, database_parts(wildcards) + 1)
        ],
        code=code("tiebench.parts", "tiebench.scoring", "tiebench._ap_at_k"),
    output:
        "results/runs/{protocol}/{method}/{bits}/{seed}/scores.json",
        "results/runs/{protocol}/{method}/{bits}/{seed}/per_query.npz",
    log:
        "results/logs/score_parts/{protocol}/{method}/{bits}/{seed}.log",
    wildcard_constraints:
        protocol=one_of(IN_PARTS),
    conda:
        "../../environment.yml"
    resources:
        mem_mb=asked("memory_mb", "score"),
        runtime=asked("minutes", "score"),
    params:
        settings=score_settings,
        run=subpath(input.run, parent=True),
    message:
        "{wildcards.protocol}: score {wildcards.method}, {wildcards.bits} bits, seed {wildcards.seed}, from parts"
    shell:
        "exec python -m workflow.scripts.score_parts --log {log:q} --settings {params.settings:q}"
        " --run {params.run:q} --parts {input.parts:q}"
