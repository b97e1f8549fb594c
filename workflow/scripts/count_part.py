"""Codes to the joint histograms of one part of the database."""

from workflow.scripts import _job


def work(options):
    from tiebench.counting import parts
    from tiebench.counting.histograms import joint_histograms
    from tiebench.files import replaced
    from workflow.stages.protocol_data import ProtocolData
    from workflow.stages.run_records import read_codes, read_record

    protocol = ProtocolData(options.protocol_folder, options.dataset, options.settings)
    part, of = parts.parse(options.part)
    with _job.named(options.run), replaced(options.output) as path:
        record = read_record(options.run)
        if record["status"] != "done":
            return  # an empty file: there are no codes to count
        split, bits = protocol.split, record["bits"]
        query, database = read_codes(options.run, record, len(split.query), len(split.database))
        piece = parts.span(part, of, len(database))
        affinity = protocol.scoring_affinity(split.database[piece])
        found = joint_histograms(query, database[piece], bits, affinity, threads=options.threads)
        parts.save(path, found, part, of, len(database), parts.fingerprint(query, split.query))


if __name__ == "__main__":
    arguments = _job.parser("count_part")
    _job.add_protocol(arguments)
    arguments.add_argument("--run", required=True, help="folder of the run")
    arguments.add_argument("--part", required=True, help="3/16: the third of sixteen")
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments)
