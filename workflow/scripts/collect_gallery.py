"""Codes and images to what the retrieval gallery of a table shows."""

from workflow.scripts import _job


def work(options):
    import numpy as np

    from tiebench.files import replaced
    from workflow.stages import gallery_data

    settings = options.settings
    cells = [tuple(cell) for cell in settings["cells"]]
    found = gallery_data.collect(
        cells, settings["datasets"], settings["protocols"], settings["seed"], settings["queries"]
    )
    with replaced(options.output) as path, path.open("wb") as file:
        np.savez_compressed(file, **found)


if __name__ == "__main__":
    arguments = _job.parser("collect_gallery")
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments)
