"""Codes to scores: scores.json and per_query.npz of each run."""

from workflow.scripts import _job


def work(options):
    from tiebench.counting.histograms import joint_histograms
    from tiebench.scoring import score_histograms
    from workflow.stages import transfer
    from workflow.stages.protocol_data import ProtocolData
    from workflow.stages.run_records import (
        read_codes,
        read_estimates,
        read_raw_scores,
        read_record,
        run_health,
        write_scores,
    )

    settings = options.settings
    protocol = ProtocolData(options.protocol_folder, options.dataset, settings)
    split = protocol.split
    # Distances cost more than scoring: the runs of a job share them.
    affinity = protocol.scoring_affinity(keep=len(options.runs) > 1)
    class_counts = protocol.class_counts()
    for name in options.runs:
        run = f"{options.folder}/{name}"
        with _job.named(run):
            record, scores, health = read_record(run), None, None
            if record["status"] == "done":
                codes = read_codes(run, record, len(split.query), len(split.database))
                found = joint_histograms(*codes, record["bits"], affinity, threads=options.threads)
                scores = score_histograms(found, settings["at"], settings["ap_at_normaliser"])
                health = run_health(record, *codes, found, scores.means, class_counts)
                if settings.get("transfer"):
                    labels = protocol.labels[split.query], protocol.labels[split.database]
                    right = transfer.of_codes(*codes, record["bits"], *labels)
                    scores.means[transfer.METRIC] = float(right.mean())
                    scores.per_query[transfer.METRIC] = right
                if any(settings.get(key) for key in ("asymmetric", "estimated", "rescore", "orders")):
                    from workflow.stages.other_rankings import add_rankings

                    raw = read_raw_scores(run, record, len(split.query))
                    kept = read_estimates(run, record, len(split.query), len(split.database))
                    scores = add_rankings(
                        scores, codes, raw, kept, record["bits"], affinity, protocol, settings
                    )
            _job.log.info("%s", write_scores(run, record, scores, health))


if __name__ == "__main__":
    arguments = _job.parser("score_codes")
    _job.add_protocol(arguments)
    _job.add_runs(arguments)
    _job.run(work, arguments, lambda options: "kernels")
