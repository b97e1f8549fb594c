# Codes -> scores, per query and averaged.


for job in run_jobs():

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
            code=code("evaluation.scoring", "evaluation._popcount", "evaluation._cut"),
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
            mem_mb=4000,
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
