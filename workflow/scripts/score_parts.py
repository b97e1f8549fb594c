"""Histograms of all parts of the database to scores: scores.json and per_query.npz of a run."""

from workflow.scripts import _job


def work(options):
    from tiebench import parts
    from tiebench.files import read_json
    from tiebench.scoring import score_histograms
    from workflow.run_records import write_scores

    settings = options.settings
    with _job.named(options.run):
        record, scores = read_json(f"{options.run}/run.json"), None
        if record["status"] == "done":
            files = [f"{options.run}/parts/{part}.npz" for part in range(1, options.parts + 1)]
            scores = score_histograms(parts.load_merged(files), settings["at"], settings["ap_at_normaliser"])
        _job.log.info("%s", write_scores(options.run, record, scores))


if __name__ == "__main__":
    arguments = _job.parser("score_parts")
    arguments.add_argument("--run", required=True, help="folder of the run")
    arguments.add_argument("--parts", type=int, required=True, help="how many parts count_part wrote")
    _job.run(work, arguments)
