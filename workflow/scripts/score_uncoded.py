"""Features of a protocol, not encoded, to scores: results/uncoded/<protocol>.json."""

from workflow.scripts import _job


def work(options):
    from tiebench.files import write_json
    from workflow.stages import transfer
    from workflow.stages.protocol_data import ProtocolData
    from workflow.stages.uncoded import cosine_scores

    settings = options.settings
    protocol = ProtocolData(options.protocol_folder, options.dataset, settings)
    means = cosine_scores(
        protocol.items,
        protocol.split.query,
        protocol.split.database,
        protocol.affinity.block,
        protocol.affinity.levels,
        settings["at"],
        settings["ap_at_normaliser"],
    )
    rows = protocol.split.query, protocol.split.database
    if settings.get("transfer"):
        assert protocol.items is not None  # features are an input of this job
        query, database = (protocol.items[part] for part in rows)
        query_labels, database_labels = (protocol.labels[part] for part in rows)
        right = transfer.correctness(query, database, query_labels, database_labels)
        means[transfer.METRIC] = float(right.mean())
    means["queries"] = len(protocol.split.query)
    record = {"protocol": options.protocol, "similarity": "cosine", "metrics": means}
    write_json(options.output, record | {"fingerprints": protocol.fingerprints})
    _job.log.info("%s: uncoded features, ap %.4f", options.protocol, means["ap"])


if __name__ == "__main__":
    arguments = _job.parser("score_uncoded")
    arguments.add_argument("--protocol", required=True)
    _job.add_protocol(arguments)
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments, lambda options: "kernels")
