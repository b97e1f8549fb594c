"""A method's hyper-parameters for a protocol and a code length, chosen on parts of the training set."""

from workflow.scripts import _job

SPARE = 4  # times as many settings are drawn as there are trials: some may have no score


def work(options):
    settings = options.settings
    from dataclasses import asdict

    from methods.base.catalogue import load_class
    from tiebench.compile import compile_kernels
    from tiebench.files import write_json
    from tiebench.metrics import resolve
    from workflow.stages.checkpoints import checkpoint_path, decided_by
    from workflow.stages.protocol_data import ProtocolData
    from workflow.tuning.search import Evaluated, confirm, ends, ranked, search, widen
    from workflow.tuning.spaces import draw_trials, restricted, with_candidates
    from workflow.tuning.validation import validation_score

    rule, given = settings["search"], settings["hyperparameters"]
    if rule["seconds"] is not None:
        compile_kernels()  # the compiler's seconds are no trial's
    method_class = load_class(settings["class"])
    _job.prepare_training(method_class, options)
    protocol = ProtocolData(
        options.protocol_folder, options.dataset, settings, options.items, options.weights
    )
    whole = method_class(bits=options.bits, **given).hyperparameters()
    in_trials = restricted([rule.get("trial_settings", {})], whole)[0]
    spaces = [
        {name: axis for name, axis in space.items() if name not in in_trials}
        for space in restricted(settings["spaces"], whole)
    ]
    drawn = draw_trials(spaces, whole, SPARE * rule["trials"], rule["seed"])
    trials, spares = drawn[: rule["trials"]], drawn[rule["trials"] :]
    trials = with_candidates(trials, settings.get("candidates", []), spaces, whole)
    unlimited = [trial.settings for trial in trials if trial.origin in ("as given", "candidate")]
    title = f"{options.name}/{options.protocol}/{options.method}/{options.bits} bits"

    # Which trials are made does not decide their scores: a longer search continues a shorter one.
    of_scores = {
        key: value for key, value in settings.items() if key not in ("spaces", "candidates", "search")
    }
    of_scores |= {key: rule.get(key) for key in ("metric", "seed", "trial_settings")}
    code = decided_by(settings, options.weights, "workflow.scripts.tune_method", "workflow.tuning.validation")
    place = f"tuning/{options.name}/{options.protocol}/{options.method}/{options.bits}"

    def evaluated(shares, seconds):
        def score(trial, repeat):
            fit = options.bits, given | trial | in_trials, rule["metric"], shares, repeat
            limit, normaliser = made.limit(trial), settings["ap_at_normaliser"]
            with _job.named(f"{title}, {trial or 'the settings as they are'}"):
                return validation_score(method_class, protocol, *fit, limit, rule["seed"], normaliser)

        decides = [code, protocol.fingerprints, of_scores | {"shares": shares}]
        kept, work = checkpoint_path(place, decides, "jsonl"), rule.get("work") or ()
        made = Evaluated(kept, score, seconds, unlimited, work)
        return made

    higher_is_better = resolve(rule["metric"])[0].higher_is_better
    report, rungs = _job.Progress(title), rule["rungs"]
    evaluate = evaluated(rule["shares"], rule["seconds"])
    best = search(trials, evaluate, report, rungs, higher_is_better, spares)
    best = widen(trials, best, spaces, whole, rule["widen"], evaluate, report, rungs, higher_is_better)
    if trials[best].mean is None:
        reason = trials[best].evaluations[-1]["reason"]
        raise ValueError(f"{title}: none of {len(trials)} trials has a score; the first: {reason}")
    order = ranked(trials, best, rungs, higher_is_better)
    for rung, last in enumerate(rule.get("confirm") or (), start=len(rungs) + 1):
        shares = rule["shares"] | {key: last[key] for key in ("fit", "query") if key in last}
        # These trials have ended within any limit of seconds on fewer items.
        evaluate = evaluated(shares, None)
        order = confirm(trials, order, evaluate, report, last, rung, higher_is_better)
    found = {"protocol": options.protocol, "method": options.method, "bits": options.bits}
    found |= {"search": {"name": options.name} | rule}
    changed = set().union(*spaces, *(trial.settings for trial in trials))
    found |= {"unchanged": {name: whole[name] for name in sorted(changed)}}
    found |= {"trials": [asdict(trial) for trial in trials], "chosen": order[0]}
    found |= {"ends": sorted(ends(trials, order[0], spaces, whole))}
    write_json(options.output, found)
    won = trials[order[0]]
    _job.log.info("%s: %.4f with %s", title, won.last_mean, won.settings or "the settings as they are")


if __name__ == "__main__":
    arguments = _job.parser("tune_method")
    arguments.add_argument("--name", required=True, help="name of the tuning")
    arguments.add_argument("--protocol", required=True)
    arguments.add_argument("--method", required=True)
    arguments.add_argument("--bits", type=int, required=True)
    _job.add_protocol(arguments, trains=True)
    arguments.add_argument("--output", required=True, help="JSON of the trials and the choice")
    _job.run(work, arguments)
