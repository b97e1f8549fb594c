# Training sets -> codes: one run per protocol, method, code length and seed. A job makes one run, or a group.
# Codes that other programs made are imported instead, and those of another protocol's runs are taken from these.


for job in run_jobs(PLAN):

    rule:
        name:
            f"train_and_encode{job.name}"
        input:
            seen=of(PLAN.run_items, **job.given),
            weights=sources(PLAN.run_weights, **job.given),
            checked=of(PLAN.run_check, **job.given),
            affinity=of(PLAN.affinity_files, **job.given),
            split=f"resources/protocols/{job.protocol}/split.npz",
            labels=of(PLAN.labels, **job.given),
        output:
            expand(
                f"results/runs/{job.protocol}/{{method}}/{{run}}/{{file}}",
                run=job.runs,
                file=TRAINED,
                allow_missing=True,
            ),
        log:
            f"results/logs/train_and_encode/{job.protocol}/{{method}}/{job.log}.log",
        wildcard_constraints:
            protocol=job.protocols,
            method=job.methods,
        priority: of(PLAN.training_priority, runs=job.runs)
        conda:
            "../../environment.yml"
        threads: PLAN["threads"]["train"]
        resources:
            mem_mb=resource("memory_mb", "train"),
            runtime=resource("minutes", "train"),
            gpu=of(PLAN.gpus),
        params:
            settings=settings(PLAN.run_settings, together=job.together, **job.given),
            code=code(PLAN.run_code, **job.given),
            threads=PLAN["threads"]["train"],  # also on fewer cores: it decides the order of sums
            dataset=of(PLAN.dataset_folder, **job.given),
            protocol=subpath(input.split, parent=True),
            # As a parameter, and not written into the command: that of a run alone and in a group is the same.
            name=lambda wildcards, input: Path(input.split).parts[-2],
            folder=subpath(output[0], ancestor=3),
            runs=runs_of_job,
        message:
            f"{job.of_protocol}: train {{wildcards.method}}, {job.words}"
        shell:
            "exec python -m workflow.scripts.train_and_encode --log {log:q} --threads {params.threads}"
            " --settings {params.settings:q} --protocol {params.name} --method {wildcards.method}"
            " --runs {params.runs} --dataset {params.dataset:q} --protocol-folder {params.protocol:q}"
            " --folder {params.folder:q} --items {input.seen:q} --weights {input.weights:q}"


rule import_codes:
    input:
        codes=of(external_codes.run_files, plan=PLAN),
        split="resources/protocols/{protocol}/split.npz",
        labels=of(PLAN.labels),
    output:
        expand("results/runs/{{protocol}}/{{method}}/{{bits}}/{{seed}}/{file}", file=TRAINED),
    log:
        "results/logs/import_codes/{protocol}/{method}/{bits}/{seed}.log",
    wildcard_constraints:
        protocol=f"(?!(?:{one_of(PLAN.protocols_of_codes())})/){NAME}",
        method=one_of(CONFIGURATION.external_methods()),
    conda:
        "../../environment.yml"
    params:
        settings=settings(external_codes.run_settings, plan=PLAN),
        code=code(
            PLAN.code,
            "workflow.scripts.import_codes",
            "workflow.stages.run_records",
            "workflow.configuration.external_codes",
        ),
        dataset=of(PLAN.dataset_folder),
        protocol=subpath(input.split, parent=True),
        folder=subpath(output[0], ancestor=3),
    message:
        "{wildcards.protocol}: import {wildcards.method}, {wildcards.bits} bits, seed {wildcards.seed}"
    shell:
        "exec python -m workflow.scripts.import_codes --log {log:q} --settings {params.settings:q}"
        " --protocol {wildcards.protocol} --method {wildcards.method} --dataset {params.dataset:q}"
        " --protocol-folder {params.protocol:q} --folder {params.folder:q}"
        " --runs {wildcards.bits}/{wildcards.seed}"


rule take_codes:
    input:
        run=of(PLAN.taken_run),
        theirs=of(PLAN.taken_split),
        split="resources/protocols/{protocol}/split.npz",
    output:
        expand("results/runs/{{protocol}}/{{method}}/{{bits}}/{{seed}}/{file}", file=TRAINED),
    log:
        "results/logs/take_codes/{protocol}/{method}/{bits}/{seed}.log",
    wildcard_constraints:
        protocol=one_of(PLAN.protocols_of_codes()),
    group:
        "score"
    conda:
        "../../environment.yml"
    params:
        code=code(
            PLAN.code,
            "workflow.scripts.take_codes",
            "workflow.stages.run_records",
            "workflow.stages.taken_codes",
        ),
        # Of parameters that are made from the input, no change is noticed: whose codes they are is one here.
        source=of(PLAN.taken_run),
        ours=subpath(input.split, parent=True),
        theirs=lambda wildcards, input: Path(input.theirs).parent,
        run=lambda wildcards, input: Path(input.run[0]).parent,
        folder=subpath(output[0], parent=True),
    message:
        "{wildcards.protocol}: codes of {wildcards.method}, {wildcards.bits} bits, seed {wildcards.seed}"
    shell:
        "exec python -m workflow.scripts.take_codes --log {log:q} --run {params.run:q} --theirs {params.theirs:q}"
        " --protocol {wildcards.protocol} --bits {wildcards.bits} --ours {params.ours:q} --output {params.folder:q}"
