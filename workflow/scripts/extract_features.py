"""Images to what a network makes of them: float32 (n, width), shard by shard."""

from workflow.scripts import _job


def work(options):
    from pathlib import Path

    import torch

    import networks
    from networks.base import features
    from tiebench.files import read_result_array

    settings = options.settings
    torch.set_num_threads(options.threads)
    _job.keep_memory()
    images = read_result_array(options.images, True)
    given = {"batch_size": settings["batch_size"], "device": settings["device"]}
    given["report"] = _job.Progress(options.name)
    path = Path(options.output)
    weights = Path(options.weights[0]) if options.weights else None
    network = networks.make(settings["architecture"], weights, **settings["options"])
    features.extract(network, images, path, name=options.name, **given)
    _job.log.info("%s: %s", options.name, read_result_array(path, True).shape)


if __name__ == "__main__":
    arguments = _job.parser("extract_features")
    arguments.add_argument("--name", required=True)
    arguments.add_argument("--images", required=True, help=".npy file of the images")
    arguments.add_argument("--weights", nargs="*", default=[], help="file of pretrained weights")
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments)
