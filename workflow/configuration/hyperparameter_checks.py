"""Checks of hyper-parameters: those of methods, those that searches chose, and the spaces of searches."""

import ast
import itertools
import re

from datasets import affinity
from tiebench import metrics
from tiebench.messages import did_you_mean, joined, shorten
from workflow.configuration.hyperparameters import BESIDE

SET_ELSEWHERE = ("bits", "seed", "device")  # parameters of methods that come from tables and general settings


def check_settings(configuration, where, method, settings):
    """Hyper-parameters of a method, and their changes `by_bits`."""
    parameters = _settable(configuration, method)
    beside = BESIDE if where[0] == "tuned" else ("by_bits",)
    for place, values in [(where, settings), *_by_bits(configuration, where, settings)]:
        for parameter, value in values.items():
            if place == where and parameter in beside:
                continue
            if parameter not in parameters:
                hint = did_you_mean(parameter, parameters)
                configuration.fail((*place, parameter), f"{method} has no such hyper-parameter{hint}")
            if not fits(value, parameters[parameter]):
                hint = " (YAML reads 5e-4 as text: write 5.0e-4)" if _is_number(value) else ""
                message = f"must be {parameters[parameter]}, not {shorten(repr(value))}{hint}"
                configuration.fail((*place, parameter), message)


def _is_number(value):
    """Whether a text is a number to Python."""
    try:
        return isinstance(value, str) and float(value) is not None
    except ValueError:
        return False


def _by_bits(configuration, where, settings):
    """(keys, changes) of each code length of `by_bits`."""
    found = {}
    tried = sorted(map(int, settings.get("search", {}).get("tried") or ())) if where[0] == "tuned" else []
    for bits, change in settings.get("by_bits", {}).items():
        place = (*where, "by_bits", bits)
        if not re.fullmatch("[1-9][0-9]{0,3}", str(bits)):
            configuration.fail(place, "must be a number of bits")
        if int(bits) in found:
            configuration.fail(place, "is defined twice")
        if tried and int(bits) not in tried:
            configuration.fail(place, f"no run has it: the search tried {joined(tried)} bits")
        if "by_bits" in change:
            configuration.fail((*place, "by_bits"), "belongs one level higher")
        found[int(bits)] = place, change
    return found.values()


def _settable(configuration, method):
    """Hyper-parameter -> annotation, for those that config/methods.yaml and tunings may set."""
    parameters = configuration.metadata(method).parameters
    return {name: parameters[name] for name in parameters if name not in SET_ELSEWHERE}


def check_tuned(configuration, protocol, methods):
    """What searches chose for a protocol."""
    known = configuration["protocols"]
    configuration.check_known(("tuned", protocol), protocol, known, "protocol")
    for method, settings in methods.items():
        where = ("tuned", protocol, method)
        _check_trained_here(configuration, where, method)
        if settings is None:
            continue
        if not configuration["methods"].get(method, {}).get("tuned", True):
            configuration.fail(where, f"{method} has `tuned: false`, so nothing uses this")
        search = settings["search"]
        for key in ("tried", "taken"):
            for bits in search.get(key, {}):
                if not re.fullmatch("[1-9][0-9]{0,3}", str(bits)):
                    configuration.fail((*where, "search", key, bits), "must be a number of bits")
        tried = sorted(map(int, search.get("tried", {})))
        for bits, taken in search.get("taken", {}).items():
            if taken not in tried:
                message = f"the search tried no {taken} bits, only {joined(tried)}"
                configuration.fail((*where, "search", "taken", bits), message)
        check_settings(configuration, where, method, settings)


def check_trains(configuration, where, protocol):
    """That runs of a protocol are trained, and have hyper-parameters."""
    if other := configuration["protocols"][protocol]["codes_of"]:
        message = f"{protocol} takes its codes from {other}: hyper-parameters are that protocol's"
        configuration.fail(where, message)


def _check_trained_here(configuration, where, method):
    configuration.check_known(where, method, configuration.methods_known(), "method")
    if configuration.external_folder(method) is not None:
        configuration.fail(where, f"{method} is external: there are no hyper-parameters to choose")


def check_tuning(configuration, name, tuning):
    """A search: what it names exists, and its spaces hold what the methods take."""
    where = ("tuning", name)
    protocols, known = configuration["protocols"], configuration.methods_known()
    configuration.check_known((*where, "protocol"), tuning["protocol"], protocols, "protocol")
    check_trains(configuration, (*where, "protocol"), tuning["protocol"])
    kind = protocols[tuning["protocol"]]["affinity"]["kind"]
    said = affinity.KIND.named(kind).said
    if said.of_queries_only and not said.from_features:
        message = f"its affinity, {kind}, is of its queries alone: there is none within the training set"
        configuration.fail((*where, "protocol"), message)
    entry, _ = configuration.check_metric((*where, "metric"), tuning["metric"])
    if entry.compute is None or metrics.ranking_of(tuning["metric"])[0] is not None:
        configuration.fail((*where, "metric"), "must be a metric of the ranking by Hamming distance")
    for method in tuning["methods"]:
        _check_trained_here(configuration, (*where, "methods"), method)
        if not configuration["methods"].get(method, {}).get("tuned", True):
            message = f"{method} has `tuned: false`: nothing would use what is chosen"
            configuration.fail((*where, "methods"), message)
    for parameter, values in tuning.get("space", {}).items():
        _check_space(configuration, (*where, "space", parameter), tuning["methods"], parameter, values)
    for method, space in tuning.get("space_of", {}).items():
        configuration.check_known((*where, "space_of", method), method, known, "method")
        for parameter, values in space.items():
            _check_space(configuration, (*where, "space_of", method, parameter), [method], parameter, values)
    for parameter, value in tuning.get("trial_settings", {}).items():
        place = (*where, "trial_settings", parameter)
        _check_space(configuration, place, tuning["methods"], parameter, [value])
        spaces = tuning.get("space", {}), *tuning.get("space_of", {}).values()
        if any(parameter in space for space in spaces):
            configuration.fail(place, "is in the space, too")
    for method, candidates in tuning.get("candidates", {}).items():
        _check_trained_here(configuration, (*where, "candidates", method), method)
        for number, settings in enumerate(candidates):
            place = (*where, "candidates", f"{method}[{number}]")
            if "by_bits" in settings:
                configuration.fail((*place, "by_bits"), "must be left out: a candidate is for all lengths")
            check_settings(configuration, place, method, settings)
            if both := sorted(set(settings) & set(tuning.get("trial_settings", {}))):
                configuration.fail((*place, both[0]), "is among the trial_settings, too")
    if tuning["shares"]["fit"] + tuning["shares"]["query"] >= 1:
        configuration.fail((*where, "shares"), "fit and query together must leave a database")
    for number, limit in enumerate(tuning.get("work", ())):
        for parameter in limit["of"]:
            place = (*where, f"work[{number}]", "of")
            of_methods = _having(configuration, place, tuning["methods"], parameter)
            for method, annotation in of_methods.items():
                if not fits(1, annotation):
                    configuration.fail(place, f"{parameter} of {method} is {annotation}, no number")
    for number, last in enumerate(tuning["confirm"]):
        if last["fit"] + last.get("query", tuning["shares"]["query"]) >= 1:
            configuration.fail((*where, f"confirm[{number}]"), "fit and query together must leave a database")


def _having(configuration, where, methods, parameter):
    """The methods that have a hyper-parameter, of which some must: method -> its annotation."""
    of_method = {method: _settable(configuration, method) for method in methods}
    having = {method: known[parameter] for method, known in of_method.items() if parameter in known}
    if not having:
        known = sorted({name for known in of_method.values() for name in known})
        hint = did_you_mean(parameter, known)
        configuration.fail(where, f"none of the methods has such a hyper-parameter{hint}")
    return having


def _check_space(configuration, where, methods, parameter, values):
    having = _having(configuration, where, methods, parameter)
    if isinstance(values, dict) and values["log_uniform"][0] >= values["log_uniform"][1]:
        configuration.fail((*where, "log_uniform"), "must be a lower and a higher number")
    values = values["log_uniform"] if isinstance(values, dict) else values
    for (method, annotation), value in itertools.product(having.items(), values):
        if not fits(value, annotation):
            configuration.fail(where, f"of {method} must be {annotation}, not {shorten(repr(value))}")


_SIMPLE = {"int": (int,), "float": (int, float), "str": (str,)}


def fits(value, annotation):
    """Whether a value from YAML fits a field's annotation, which is text.

    Understood are int, float, bool, str, None, list[…], tuple[…], Literal[…] and their unions; anything else
    accepts every value.
    """
    return _fits(value, ast.parse(annotation, mode="eval").body)


def _fits(value, node):
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _fits(value, node.left) or _fits(value, node.right)
    if isinstance(node, ast.Constant) and node.value is None:
        return value is None
    if isinstance(node, ast.Name) and node.id == "bool":
        return isinstance(value, bool)
    if isinstance(node, ast.Name) and node.id in _SIMPLE:
        # Python counts booleans among the integers.
        return isinstance(value, _SIMPLE[node.id]) and not isinstance(value, bool)
    if isinstance(node, ast.Name) and node.id in ("list", "tuple"):
        return isinstance(value, list)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        constants = [part.value for part in parts if isinstance(part, ast.Constant)]
        if node.value.id == "Literal" and len(constants) == len(parts):
            return any(type(value) is type(one) and value == one for one in constants)
        if node.value.id in ("list", "tuple"):
            if not isinstance(value, list):
                return False
            repeated = isinstance(parts[-1], ast.Constant) and parts[-1].value is Ellipsis
            if node.value.id == "list" or repeated:
                return all(_fits(one, parts[0]) for one in value)
            return len(value) == len(parts) and all(map(_fits, value, parts))
    return True
