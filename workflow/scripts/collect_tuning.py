"""What the searches of a tuning chose, as the key `tuned` of a configuration, and all of their trials."""

from workflow.scripts import _job


def work(options):
    from tiebench.files import read_json, write_text
    from workflow.tuning.files import choices, trials

    found = [read_json(path) for path in options.settings["searches"]]
    write_text(f"{options.stem}.csv", trials(found))
    write_text(f"{options.stem}.yaml", choices(options.name, found))


if __name__ == "__main__":
    arguments = _job.parser("collect_tuning")
    arguments.add_argument("--name", required=True)
    arguments.add_argument("--stem", required=True, help="path of the files, without .yaml and .csv")
    _job.run(work, arguments)
