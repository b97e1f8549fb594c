# Training sets -> codes: one run per protocol, method, code length and seed. A job makes one run, or a group.


for job in run_jobs():

    rule:
        name:
            f"train_and_encode{job.name}"
        input:
            seen=run_items,
            weights=of_trained(network_weights),
            checked=of_trained(network_check),
            distances=affinity_features,
            affinity="resources/protocols/{protocol}/affinity.json",
            split="resources/protocols/{protocol}/split.npz",
            labels=lambda wildcards: f"{dataset_folder(wildcards)}/labels.npy",
            code=method_code,
        output:
            expand(
                "results/runs/{{protocol}}/{{method}}/{run}/{file}",
                run=job.runs,
                file=["codes.npz", "model.npz", "training.jsonl", "run.json"],
            ),
        log:
            f"results/logs/train_and_encode/{{protocol}}/{{method}}/{job.log}.log",
        benchmark:
            f"results/benchmarks/train_and_encode/{{protocol}}/{{method}}/{job.log}.tsv"
        wildcard_constraints:
            protocol=job.protocols,
            method=job.methods,
        priority: training_priority(job.runs)
        conda:
            "../../environment.yml"
        threads: CONFIGURATION["threads"]["train"]
        resources:
            mem_mb=asked("memory_mb", "train"),
            runtime=asked("minutes", "train"),
            gpu=gpus,
        params:
            settings=run_settings(job.together),
            dataset=dataset_folder,
            protocol=subpath(input.split, parent=True),
            folder=method_folder,
            runs=runs_of_job,
        message:
            f"{{wildcards.protocol}}: train {{wildcards.method}}, {job.words}"
        shell:
            "exec python -m workflow.scripts.train_and_encode --log {log:q} --threads {threads}"
            " --settings {params.settings:q} --protocol {wildcards.protocol} --method {wildcards.method}"
            " --runs {params.runs} --dataset {params.dataset:q} --protocol-folder {params.protocol:q}"
            " --folder {params.folder:q} --items {input.seen:q} --weights {input.weights:q}"


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
