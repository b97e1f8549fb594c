"""The chosen hyper-parameters of a tuning, in the form of config/methods.yaml."""

from workflow.scripts import _job


def work(options):
    import yaml

    from tiebench.files import read_json, write_text

    tuning = options.settings["tuning"]
    methods = {}
    for path in options.settings["chosen"]:
        choice = read_json(path)
        of_method = methods.setdefault(choice["method"], {"protocols": {tuning["protocol"]: {}}})
        settings = of_method["protocols"][tuning["protocol"]]
        if len(tuning["bits"]) == 1:  # every length takes them
            settings |= choice["settings"]
        else:
            settings.setdefault("by_bits", {})[choice["bits"]] = choice["settings"]
    text = yaml.safe_dump({"methods": methods}, sort_keys=True, default_flow_style=None, width=110)
    write_text(options.output, f"# Chosen by the tuning {options.name} on parts of the training set.\n{text}")


if __name__ == "__main__":
    arguments = _job.parser("collect_tuning")
    arguments.add_argument("--name", required=True)
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments)
