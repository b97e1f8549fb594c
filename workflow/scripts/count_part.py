"""Codes to the joint histograms of one part of the database."""

from workflow.scripts import _job


def work(options):
    import numpy as np

    from evaluation import parts
    from evaluation.hamming import joint_histograms
    from workflow.data import Protocol
    from workflow.files import read_json, replaced

    protocol = Protocol(options.protocol_folder, options.dataset, options.settings)
    part, of = parts.parse(options.part)
    with _job.named(options.run), replaced(options.output) as path:
        if read_json(f"{options.run}/run.json")["status"] != "done":
            return  # an empty file: there are no codes to count
        with np.load(f"{options.run}/codes.npz", allow_pickle=False) as codes:
            query, database, bits = codes["query"], codes["database"], int(codes["bits"])
        piece = parts.span(part, of, len(database))
        affinity = protocol.scoring_affinity(protocol.split.database[piece])
        found = joint_histograms(query, database[piece], bits, affinity, threads=options.threads)
        parts.save(path, found, part, of, len(database), parts.fingerprint(query, protocol.split.query))


if __name__ == "__main__":
    arguments = _job.parser("count_part")
    arguments.add_argument("--protocol-folder", required=True)
    arguments.add_argument("--dataset", required=True, help="folder of the dataset")
    arguments.add_argument("--run", required=True, help="folder of the run")
    arguments.add_argument("--part", required=True, help="3/16: the third of sixteen")
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments)
