"""Codes to scores: scores.json and per_query.npz of each run."""

from workflow.scripts import _job

MOST_KEPT = 1 << 28  # affinities of queries with the database, one byte each


def work(options):
    from functools import cache

    import numpy as np

    from evaluation.hamming import AffinityBlocks, EqualLabels, SharedLabels
    from evaluation.scoring import score
    from workflow.data import Protocol
    from workflow.files import filled, read_json, write_json

    settings = options.settings
    protocol = Protocol(options.protocol_folder, options.dataset, settings)
    query, database = protocol.split.query, protocol.split.database
    labels = protocol.affinity.scoring_labels
    if labels is None:
        kind = np.min_scalar_type(max(protocol.affinity.levels))

        def compute(begin, end):
            return protocol.affinity.block(query[begin:end], database).astype(kind)

        # Distances cost more than scoring: the runs of a job share them, if they are not too many.
        if len(options.runs) > 1 and len(query) * len(database) <= MOST_KEPT:
            compute = cache(compute)
        affinity = AffinityBlocks(compute, tuple(int(level) for level in protocol.affinity.levels))
    elif labels.ndim == 1:
        affinity = EqualLabels(labels[query], labels[database])
    else:
        affinity = SharedLabels(labels[query], labels[database], protocol.affinity.kind == "shared_label")
    for name in options.runs:
        run = f"{options.folder}/{name}"
        with _job.named(run):
            record = read_json(f"{run}/run.json")
            identity = {
                key: record[key] for key in ("protocol", "method", "bits", "seed", "status", "reason")
            }
            metrics, curves, per_query = {}, {}, {}
            if record["status"] == "done":
                with np.load(f"{run}/codes.npz", allow_pickle=False) as codes:
                    scores = score(
                        codes["query"],
                        codes["database"],
                        int(codes["bits"]),
                        affinity,
                        at=settings["at"],
                        ap_at_normaliser=settings["ap_at_normaliser"],
                        threads=options.threads,
                    )
                metrics, per_query = scores.means, scores.per_query
                curves = {
                    kind: [None if np.isnan(value) else value for value in values.tolist()]
                    for kind, values in scores.curves.items()
                }
            with filled(run) as folder:
                write_json(folder / "scores.json", identity | {"metrics": metrics, "curves": curves})
                with (folder / "per_query.npz").open("wb") as file:
                    np.savez(file, **per_query)
        if record["status"] == "done":
            _job.log.info(
                "%s/%s/%d bits/seed %d: AP_T %.4f, NDCG_T %.4f",
                *(identity[key] for key in ("protocol", "method", "bits", "seed")),
                scores.means["ap"],
                scores.means["ndcg"],
            )


if __name__ == "__main__":
    arguments = _job.parser("score_codes")
    arguments.add_argument("--protocol-folder", required=True)
    arguments.add_argument("--dataset", required=True, help="folder of the dataset")
    _job.add_runs(arguments)
    _job.run(work, arguments)
