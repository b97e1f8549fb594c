"""Histograms of all parts of the database to scores: scores.json and per_query.npz of a run."""

from workflow.scripts import _job


def work(options):
    from tiebench.counting import parts
    from tiebench.files import reading_result
    from tiebench.scoring import score_histograms
    from workflow.stages.protocol_data import ProtocolData
    from workflow.stages.run_records import read_codes, read_record, run_health, write_scores

    settings = options.settings
    with _job.named(options.run):
        record, scores, health = read_record(options.run), None, None
        if record["status"] == "done":
            protocol = ProtocolData(options.protocol_folder, options.dataset, settings)
            split = protocol.split
            codes = read_codes(options.run, record, len(split.query), len(split.database))
            files = [f"{options.run}/parts/{part}.npz" for part in range(1, options.parts + 1)]
            with reading_result(f"{options.run}/parts"):
                found = parts.load_merged(files)
            scores = score_histograms(found, settings["at"], settings["ap_at_normaliser"])
            health = run_health(record, *codes, found, scores.means, protocol.class_counts())
        _job.log.info("%s", write_scores(options.run, record, scores, health))


if __name__ == "__main__":
    arguments = _job.parser("score_parts")
    _job.add_protocol(arguments)
    arguments.add_argument("--run", required=True, help="folder of the run")
    arguments.add_argument("--parts", type=int, required=True, help="how many parts count_part wrote")
    _job.run(work, arguments)
