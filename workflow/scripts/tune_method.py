"""A method's hyper-parameters for a protocol and a code length, chosen on a part of the training set."""

from workflow.scripts import _job


def work(options):
    settings = options.settings
    import csv
    import io

    import numpy as np

    from methods._catalogue import load_class
    from tiebench.files import write_json, write_text
    from tiebench.metrics import resolve
    from workflow.checkpoints import checkpoint_path, decided_by
    from workflow.protocol_data import ProtocolData
    from workflow.tuning import Evaluated, draw_trials, search, validation_score

    tuning = settings["tuning"]
    method_class = load_class(settings["class"])
    if hasattr(method_class, "device"):
        import torch

        torch.set_num_threads(options.threads)
    weights = options.weights[0] if options.weights else None
    protocol = ProtocolData(options.protocol_folder, options.dataset, settings, options.items, weights)
    parameters = method_class(bits=options.bits).hyperparameters()
    trials = draw_trials(tuning["spaces"], parameters, tuning["trials"], tuning["seed"])
    title = f"{options.name}/{options.method}/{options.bits} bits"

    def score(trial, repeat):
        chosen = settings["hyperparameters"] | trial
        parts, most = tuning["shares"], tuning["seconds"]
        return validation_score(
            method_class, protocol, options.bits, chosen, tuning["metric"], parts, repeat, most
        )

    decisive = [decided_by(settings["class"], settings["network"], weights), protocol.fingerprints, settings]
    place = f"tuning/{options.name}/{options.method}/{options.bits}"
    evaluate = Evaluated(checkpoint_path(place, decisive, "jsonl"), score)
    higher_is_better = resolve(tuning["metric"])[0].higher_is_better
    best, scores = search(trials, evaluate, _job.Progress(title), tuning["rungs"], higher_is_better)
    names = sorted(set().union(*trials))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", *names, "repeats", "mean", "seconds", "chosen"])
    for index, trial in enumerate(trials):
        mean, seconds = float(np.mean(scores[index])), evaluate.seconds(trial, len(scores[index]))
        values = [trial.get(name, "") for name in names]
        writer.writerow([index, *values, len(scores[index]), mean, round(seconds, 2), index == best])
    if not np.isfinite(np.mean(scores[best])):
        raise ValueError(f"{title}: no trial was scored: all of {len(trials)} were refused or took too long")
    write_text(options.output, text.getvalue())
    chosen = {"method": options.method, "bits": options.bits, "settings": trials[best]}
    write_json(options.chosen, chosen | {"mean": float(np.mean(scores[best])), "repeats": len(scores[best])})
    evaluate.path.unlink(missing_ok=True)
    _job.log.info(
        "%s: %.4f with %s", title, np.mean(scores[best]), trials[best] or "the settings as they are"
    )


if __name__ == "__main__":
    arguments = _job.parser("tune_method")
    arguments.add_argument("--name", required=True, help="name of the tuning")
    arguments.add_argument("--method", required=True)
    arguments.add_argument("--bits", type=int, required=True)
    arguments.add_argument("--dataset", required=True, help="folder of the dataset")
    arguments.add_argument("--protocol-folder", required=True)
    arguments.add_argument("--items", required=True, help=".npy file of features, or of images")
    arguments.add_argument("--weights", nargs="*", default=[], help="file of a network's pretrained weights")
    arguments.add_argument("--output", required=True, help="CSV of the trials")
    arguments.add_argument("--chosen", required=True, help="JSON of the chosen settings")
    _job.run(work, arguments)
