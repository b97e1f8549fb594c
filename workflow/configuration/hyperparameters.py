"""Hyper-parameters of a cell: which entries of the configuration apply, and which search chose them.

An entry holds hyper-parameters and `by_bits`, changes for single code lengths; an entry of `tuned` also
`search`, what chose it.
"""

from fractions import Fraction

BESIDE = ("by_bits", "search")  # keys of an entry that are not hyper-parameters


def hyperparameters(configuration, protocol, method, bits, tuned=True):
    """Hyper-parameter -> value: defaults, then the protocol's, then what a search chose, each then by bits.

    A protocol's own go over those of the one that `hyperparameters_of` names, a fold's over its protocol's
    (of both protocols, if the other has as many folds), and all of a variant's own over all of its class's;
    of what searches chose, the last of these alone counts. A protocol that takes its codes from another, or
    their first bits, has what made them. tuned: False leaves out what searches chose.
    """
    chosen: dict[str, object] = {}
    protocol, bits = trained_as(configuration, protocol, bits)
    for _, settings in _entries(configuration, protocol, method, tuned):
        chosen |= {name: value for name, value in settings.items() if name not in BESIDE}
        wanted = searched_length(settings.get("search", {}), bits)
        for length, change in settings.get("by_bits", {}).items():
            if int(length) == wanted:
                chosen |= change
    return chosen


def search_of(configuration, protocol, method, bits):
    """The `search` of the entry of `tuned` that applies to a cell, with `tried`, the trials that it made at
    the length whose choice the cell has, and `of`, whose they were; None if no search chose the cell's
    settings. A variant with the choice of its class had no trial of its own."""
    found = None
    protocol, bits = trained_as(configuration, protocol, bits)
    for name, settings in _entries(configuration, protocol, method):
        if name is not None:
            found, own = settings["search"], name == method
            tried = _lengths(found, "tried").get(searched_length(found, bits), found["trials"]) if own else 1
            found = {key: value for key, value in found.items() if key != "taken"}
            found |= {"tried": tried, "of": name}
    return found


def trained_as(configuration, protocol, bits):
    """(protocol, code length) of the run that makes the codes of a run: its own, or those that it takes."""
    entry = configuration["protocols"][protocol]
    if entry["codes_of"] is None:
        return protocol, bits
    return entry["codes_of"], entry["prefix_of"] or bits


def searched_length(search, bits):
    """The code length whose choice applies to `bits`: the one that `taken` names for it, or of those searched
    the nearest by ratio, of two the shorter.

    search: the `search` of an entry, which may say nothing of lengths.
    """

    def distance(length):
        return Fraction(max(length, bits), min(length, bits)), length

    return _lengths(search, "taken").get(bits) or min(_lengths(search, "tried"), key=distance, default=bits)


def _lengths(search, key):
    return {int(length): number for length, number in search.get(key, {}).items()}


def budget_words(search, method):
    """What a search was allowed that chose a method's settings, in words."""
    if search["of"] != method:
        return f"the choice of {search['of']}"
    words = f"{search['trials']} trials" + (", the given ones" if search.get("candidates") else "")
    if search.get("widen"):
        words += f" and up to {search['widen']} more"
    if rungs := search.get("rungs"):
        words += f", on {'/'.join(map(str, rungs))} part{'s' if rungs[-1] > 1 else ''}"
    for last in search.get("confirm") or ():
        words += f", the best {last['trials']} again on {last['fit']:.0%}"
    if more := search.get("trial_settings"):
        words += f", with {', '.join(f'{name} {value}' for name, value in more.items())}"
    for limit in search.get("work") or ():
        words += f", {' x '.join(limit['of'])} up to {limit['most']:g}"
    return words + (f", {search['seconds']:g} s" if search.get("seconds") else "")


def _entries(configuration, protocol, method, tuned=True):
    """(whose search chose them or None, settings) of the entries that apply, the later over the earlier."""
    other, family = configuration["protocols"][protocol]["hyperparameters_of"], configuration.family(protocol)
    others, own = (configuration.members(name) for name in (other, family))
    same_fold = others[own.index(protocol)] if protocol in own and len(own) == len(others) else other
    protocols = dict.fromkeys((other, same_fold, family, protocol))
    tuned = tuned and configuration["methods"].get(method, {}).get("tuned", True)
    names = dict.fromkeys((configuration.class_of(method), method))
    # A search starts from settings that no search chose: of several choices, the nearest is whole.
    choices = [
        (name, configuration["tuned"].get(place, {}).get(name)) for name in names for place in protocols
    ]
    chosen = next((choice for choice in reversed(choices) if choice[1]), None) if tuned else None
    for name in names:
        if entry := configuration["methods"].get(name):
            yield None, entry["defaults"]
            yield from ((None, entry["protocols"].get(place, {})) for place in protocols)
        if chosen is not None and chosen[0] == name:
            yield chosen
