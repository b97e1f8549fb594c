# Codes -> scores, per query and averaged.


for job in run_jobs(PLAN, scored=True):

    rule:
        name:
            f"score_codes{job.name}"
        input:
            runs=expand(
                f"results/runs/{job.protocol}/{{method}}/{{run}}/{{file}}",
                run=job.runs,
                file=["codes.npz", "run.json"],
                allow_missing=True,
            ),
            affinity=of(PLAN.score_files, **job.given),
            split=f"resources/protocols/{job.protocol}/split.npz",
            labels=of(PLAN.labels, **job.given),
        output:
            expand(
                f"results/runs/{job.protocol}/{{method}}/{{run}}/{{file}}",
                run=job.runs,
                file=SCORED,
                allow_missing=True,
            ),
        log:
            f"results/logs/score_codes/{job.protocol}/{{method}}/{job.log}.log",
        wildcard_constraints:
            protocol=job.protocols,
            method=job.methods,
        group:
            "score"
        conda:
            "../../environment.yml"
        threads: PLAN["threads"]["score"]
        resources:
            mem_mb=resource("memory_mb", "score"),
            runtime=resource("minutes", "score"),
        params:
            settings=settings(PLAN.score_settings, **job.given),
            code=code(PLAN.score_code, **job.given),
            dataset=of(PLAN.dataset_folder, **job.given),
            protocol=subpath(input.split, parent=True),
            folder=subpath(output[0], ancestor=3),
            runs=runs_of_job,
        message:
            f"{job.of_protocol}: score {{wildcards.method}}, {job.words}"
        shell:
            "exec python -m workflow.scripts.score_codes --log {log:q} --threads {threads}"
            " --settings {params.settings:q} --runs {params.runs} --dataset {params.dataset:q}"
            " --protocol-folder {params.protocol:q} --folder {params.folder:q}"


rule count_part:
    input:
        codes="results/runs/{protocol}/{method}/{bits}/{seed}/codes.npz",
        run="results/runs/{protocol}/{method}/{bits}/{seed}/run.json",
        affinity=of(PLAN.affinity_files),
        split="resources/protocols/{protocol}/split.npz",
        labels=of(PLAN.labels),
    output:
        temp("results/runs/{protocol}/{method}/{bits}/{seed}/parts/{part}.npz"),
    log:
        "results/logs/count_part/{protocol}/{method}/{bits}/{seed}/{part}.log",
    wildcard_constraints:
        protocol=one_of(PLAN.protocols_in_parts()),
        part=r"\d+",
    group:
        "score"
    conda:
        "../../environment.yml"
    threads: PLAN["threads"]["score"]
    resources:
        mem_mb=resource("memory_mb", "score"),
        runtime=resource("minutes", "score"),
    params:
        settings=settings(PLAN.score_settings),
        code=code(PLAN.part_code),
        dataset=of(PLAN.dataset_folder),
        protocol=subpath(input.split, parent=True),
        run=subpath(input.run, parent=True),
        parts=of(PLAN.database_parts),
    message:
        "{wildcards.protocol}: count {wildcards.method}, {wildcards.bits} bits, seed {wildcards.seed},"
        " part {wildcards.part} of {params.parts}"
    shell:
        "exec python -m workflow.scripts.count_part --log {log:q} --threads {threads}"
        " --settings {params.settings:q} --dataset {params.dataset:q} --protocol-folder {params.protocol:q}"
        " --run {params.run:q} --part {wildcards.part}/{params.parts} --output {output:q}"


rule score_parts:
    input:
        codes="results/runs/{protocol}/{method}/{bits}/{seed}/codes.npz",
        run="results/runs/{protocol}/{method}/{bits}/{seed}/run.json",
        parts=of(PLAN.part_files),
        affinity=of(PLAN.affinity_files),
        split="resources/protocols/{protocol}/split.npz",
        labels=of(PLAN.labels),
    output:
        "results/runs/{protocol}/{method}/{bits}/{seed}/scores.json",
        "results/runs/{protocol}/{method}/{bits}/{seed}/per_query.npz",
    log:
        "results/logs/score_parts/{protocol}/{method}/{bits}/{seed}.log",
    wildcard_constraints:
        protocol=one_of(PLAN.protocols_in_parts()),
    conda:
        "../../environment.yml"
    resources:
        mem_mb=resource("memory_mb", "score"),
        runtime=resource("minutes", "score"),
    params:
        settings=settings(PLAN.score_settings),
        code=code(PLAN.merged_code),
        dataset=of(PLAN.dataset_folder),
        protocol=subpath(input.split, parent=True),
        run=subpath(input.run, parent=True),
        # Not compared: the scores do not depend on the number of parts.
        parts=lambda wildcards, output: PLAN.database_parts(wildcards.protocol),
    message:
        "{wildcards.protocol}: score {wildcards.method}, {wildcards.bits} bits, seed {wildcards.seed}, from parts"
    shell:
        "exec python -m workflow.scripts.score_parts --log {log:q} --settings {params.settings:q}"
        " --dataset {params.dataset:q} --protocol-folder {params.protocol:q} --run {params.run:q}"
        " --parts {params.parts}"


rule score_uncoded:
    input:
        features="resources/protocols/{protocol}/features.npy",
        affinity=of(PLAN.affinity_files),
        split="resources/protocols/{protocol}/split.npz",
        labels=of(PLAN.labels),
    output:
        "results/uncoded/{protocol}.json",
    log:
        "results/logs/score_uncoded/{protocol}.log",
    conda:
        "../../environment.yml"
    threads: PLAN["threads"]["score"]
    resources:
        mem_mb=resource("memory_mb", "score"),
        runtime=resource("minutes", "score"),
    params:
        settings=settings(PLAN.score_settings),
        code=code(PLAN.uncoded_code),
        dataset=of(PLAN.dataset_folder),
        protocol=subpath(input.split, parent=True),
    message:
        "{wildcards.protocol}: score the features themselves"
    shell:
        "exec python -m workflow.scripts.score_uncoded --log {log:q} --threads {threads}"
        " --settings {params.settings:q} --protocol {wildcards.protocol} --dataset {params.dataset:q}"
        " --protocol-folder {params.protocol:q} --output {output:q}"
