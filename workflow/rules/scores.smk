# Codes -> scores, per query and averaged.


for protocols, seeds in seed_groups():

    rule:
        name:
            f"score_codes_{'_'.join(map(str, [seeds[0], *seeds[1:][-1:]]))}_{protocols.split('|')[0]}"
        input:
            runs=expand(
                "results/runs/{{protocol}}/{{method}}/{{bits}}/{seed}/{file}",
                seed=seeds,
                file=["codes.npz", "run.json"],
            ),
            features="resources/protocols/{protocol}/features.npy",
            affinity="resources/protocols/{protocol}/affinity.json",
            split="resources/protocols/{protocol}/split.npz",
            labels=lambda wildcards: f"{dataset_folder(wildcards)}/labels.npy",
            code=code("evaluation.scoring", "evaluation._popcount", "evaluation._cut"),
        output:
            expand(
                "results/runs/{{protocol}}/{{method}}/{{bits}}/{seed}/{file}",
                seed=seeds,
                file=["scores.json", "per_query.npz"],
            ),
        log:
            f"results/logs/score_codes/{{protocol}}/{{method}}/{{bits}}/{seeds[0]}.log",
        wildcard_constraints:
            protocol=protocols,
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
            folder=subpath(input.split, parent=True),
            runs=subpath(output[0], ancestor=2),
            seeds=seeds,
        message:
            "{wildcards.protocol}: score {wildcards.method}, {wildcards.bits} bits"
        shell:
            "exec python -m workflow.scripts.score_codes --log {log:q} --threads {threads}"
            " --settings {params.settings:q} --seeds {params.seeds} --dataset {params.dataset:q}"
            " --protocol-folder {params.folder:q} --runs {params.runs:q}"
