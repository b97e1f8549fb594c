"""Training losses: listwise objectives and their gradient, beside the paper's appendix and plain autograd."""

import math

import torch

from benchmarks import loss_peers as peers
from benchmarks import probe
from benchmarks.report import duration, figure, progress
from benchmarks.timing import Disagreement, interleave
from tiebench.losses import relaxed

BITS = 48
FEATURES = 4096
COMPILED, TENSORS, APPENDIX, AUTOGRAD = "compiled", "torch only", "appendix formulation", "plain autograd"
AT_LEAST = ("at least 40", "at least 80", "at least 10")
TOLERANCE = 1e-4  # relative, float32

_PRODUCT = {
    "ap_s": (relaxed.average_precision, {"simplified": True}),
    "ap_r": (relaxed.average_precision, {"simplified": False}),
    "dcg_s": (relaxed.ndcg, {"simplified": True}),
    "dcg_r": (relaxed.ndcg, {"simplified": False}),
    "mutual information": (relaxed.mutual_information, {}),
}


def batch(items, bits=BITS, levels=2, seed=0):
    """Relaxed codes float32 (M, b) in (-1, 1), and symmetric affinities int64 (M, M) in 0..levels - 1."""
    generator = torch.Generator().manual_seed(seed)
    classes = torch.randint(0, 10, (items,), generator=generator)
    prototypes = torch.randn(10, bits, generator=generator)
    codes = torch.tanh(prototypes[classes] + 0.7 * torch.randn(items, bits, generator=generator))
    if levels == 2:
        return codes, (classes[:, None] == classes).long()
    # Closer classes have a higher affinity, and all levels occur.
    steps = (classes[:, None] - classes).abs()
    return codes, (levels - 1 - steps).clamp(min=0)


def product(codes, affinity, bins, objective, backend):
    """Mean objective and its gradient by tiebench.losses.relaxed. Returns (float, (M, b))."""
    function, options = _PRODUCT[objective]
    codes = codes.detach().requires_grad_()
    value = function(codes, affinity, bins, backend=backend, **options).mean()
    value.backward()
    return value.item(), codes.grad


def ways(codes, affinity, bins, objective, with_autograd=True, with_appendix=True):
    """The competitors: name -> function that returns the mean objective and its gradient."""
    found = {
        COMPILED: lambda: product(codes, affinity, bins, objective, "compiled"),
        TENSORS: lambda: product(codes, affinity, bins, objective, "torch"),
    }
    if objective in peers.OBJECTIVES:
        if with_appendix:
            found[APPENDIX] = lambda: peers.appendix(codes, affinity, bins, objective)
        if with_autograd:
            found[AUTOGRAD] = lambda: peers.autograd(codes, affinity, bins, objective)
    return found


def check(competitors, what):
    """Compare all values and gradients with the first competitor's. Raises `Disagreement`."""
    (_, reference), *others = competitors.items()
    value, gradient = reference()
    scale = gradient.abs().max().item()
    for name, call in others:
        other_value, other_gradient = call()
        apart = max(
            abs(other_value - value) / abs(value), (other_gradient - gradient).abs().max().item() / scale
        )
        if not apart < TOLERANCE:
            raise Disagreement(f"{what}: {name} is {apart:.1e} away")


def run(report, quick):
    """Print all tables. Returns the summary: rows (figure, reach, seen)."""
    torch.set_num_threads(1)
    rounds = 5 if quick else 11
    report.write(
        "## Losses: objective and gradient with respect to the codes",
        "float32; every item of a batch of M is a query against the others. All implementations were "
        f"checked in this run to agree to {TOLERANCE:g} (value; gradient relative to its largest entry).",
    )
    summary = []
    for section in (_objectives, _batch_sizes, _levels, _bins, _steps, _first_call):
        progress(f"losses: {section.__name__.strip('_').replace('_', ' ')}")
        summary += section(report, rounds, quick) or []
    return summary


def _objectives(report, rounds, quick):
    report.write(f"### M = 256, {BITS} bits, bins = {BITS}")
    summary = []
    names = {
        "ap_s": "AP_s",
        "ap_r": "AP_r (Proposition 2)",
        "dcg_s": "DCG_s, 4 levels",
        "dcg_r": "DCG_r (Proposition 2), 4 levels",
        "mutual information": "mutual information (MIHash)",
    }
    for objective, name in names.items():
        codes, affinity = batch(256, levels=4 if objective.startswith("dcg") else 2)
        competitors = ways(codes, affinity, BITS, objective)
        check(competitors, name)
        competitors = {f"{name}: {way}": call for way, call in competitors.items()}
        seen = interleave(competitors, rounds)
        report.times(seen, f"{name}: {COMPILED}")
        if objective in peers.OBJECTIVES:
            base, tensors, appendix, autograd = seen.values()
            reach = ("above 1",) * 3 if objective == "mutual information" else AT_LEAST
            summary += [
                (f"{name}: appendix over compiled", reach[0], figure(appendix.ratio_to(base))),
                (f"{name}: autograd over compiled", reach[1], figure(autograd.ratio_to(base))),
                (f"{name}: appendix over torch only", reach[2], figure(appendix.ratio_to(tensors))),
            ]
    return summary


def _batch_sizes(report, rounds, quick):
    sizes = (64, 256) if quick else (64, 128, 256, 512, 1024)
    report.write(
        f"### AP_s by batch size, {BITS} bits, bins = {BITS}",
        "Time of the compiled path, and ratios to it; plain autograd only up to M = 512, because of its "
        "memory. Exponent: that of the compiled path, from the row above.",
    )
    rows, before, last = [], None, 0
    for items in sizes:
        codes, affinity = batch(items)
        competitors = ways(codes, affinity, BITS, "ap_s", with_autograd=items <= 512)
        check(competitors, f"AP_s, M = {items}")
        # The three matrix products alone: no way through the distances is faster.
        scratch = torch.empty(items, items)
        competitors["matrix products"] = lambda a=codes, s=scratch: (torch.mm(a, a.T, out=s), s @ a, s.T @ a)
        seen = interleave(competitors, min(rounds, 5))
        base = seen[COMPILED]
        exponent = f"{math.log2(base.median / before) / math.log2(items / last):.2f}" if before else ""
        row = [str(items), duration(base.median), exponent]
        for way in (TENSORS, APPENDIX, AUTOGRAD, "matrix products"):
            row.append(f"x{figure(seen[way].ratio_to(base))}" if way in seen else "not run")
        rows.append(row)
        before, last = base.median, items
    report.rows(
        ["M", COMPILED, "exponent", TENSORS, APPENDIX, AUTOGRAD, "limit: its three matrix products"], rows
    )


def _spread(report, title, settings, rounds):
    """Time all ways but autograd over settings (name -> arguments of `ways`). Returns the compiled spread."""
    competitors = {}
    for name, arguments in settings.items():
        found = ways(*arguments)
        check(found, f"{title} {name}")
        competitors |= {(name, way): found[way] for way in (COMPILED, TENSORS, APPENDIX)}
    fast = {key: call for key, call in competitors.items() if key[1] != APPENDIX}
    seen = interleave(fast, 3 * rounds)
    seen |= interleave({key: call for key, call in competitors.items() if key[1] == APPENDIX}, min(rounds, 5))
    rows = []
    for name in settings:
        rows.append([name] + [duration(seen[name, way].median) for way in (COMPILED, TENSORS, APPENDIX)])
    spreads = {}
    for way in (COMPILED, TENSORS, APPENDIX):
        medians = [seen[name, way].median for name in settings]
        spreads[way] = max(medians) / min(medians)
    rows.append(["slowest over fastest"] + [f"x{figure(spread)}" for spread in spreads.values()])
    report.rows([title, COMPILED, TENSORS, APPENDIX], rows)
    return spreads[COMPILED]


def _levels(report, rounds, quick):
    report.write(f"### DCG_s by number of affinity levels, M = 256, {BITS} bits, bins = {BITS}")
    settings = {str(levels): (*batch(256, levels=levels), BITS, "dcg_s", False) for levels in (2, 4, 8)}
    spread = _spread(report, "levels", settings, rounds)
    return [("compiled DCG_s over 2, 4, 8 levels: slowest over fastest", "at most 1.15", f"{spread:.3f}")]


def _bins(report, rounds, quick):
    report.write(f"### AP_s by number of bins, M = 256, {BITS} bits")
    settings = {
        str(bins): (*batch(256), bins, "ap_s", False) for bins in (BITS // 4, BITS // 2, BITS, 2 * BITS)
    }
    spread = _spread(report, "bins", settings, rounds)
    return [("compiled AP_s over bins b/4 .. 2b: slowest over fastest", "at most 1.15", f"{spread:.3f}")]


def _steps(report, rounds, quick):
    report.write(
        f"### A step of stochastic gradient descent, Linear({FEATURES}, {BITS}) + tanh",
        "The base back-propagates a given gradient of the codes; the others back-propagate the mean "
        "objective.",
    )
    summary = []
    for items in (64, 256) if quick else (64, 128, 256):
        _, affinity = batch(items)
        competitors = {f"M = {items}: no loss": _step(items, None)}
        for objective, name in (("ap_s", "AP_s"), ("dcg_s", "DCG_s"), ("mutual information", "MIHash")):
            function, options = _PRODUCT[objective]

            def loss(codes, function=function, options=options, affinity=affinity):
                return -function(codes, affinity, BITS, **options).mean()

            competitors[f"M = {items}: {name}"] = _step(items, loss)
        seen = interleave(competitors, rounds, least_seconds=0.02)
        base, with_ap, *_ = seen
        report.times(seen, base)
        summary.append(
            (
                f"step with AP_s over without, M = {items}",
                "at most 1.3",
                figure(seen[with_ap].ratio_to(seen[base])),
            )
        )
    return summary


def _step(items, loss):
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(items, FEATURES, generator=generator)
    given = torch.randn(items, BITS, generator=generator) / items
    layer = torch.nn.Linear(FEATURES, BITS)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4)

    def step():
        optimizer.zero_grad()
        codes = torch.tanh(layer(features))
        if loss is None:
            codes.backward(given)
        else:
            loss(codes).backward()
        optimizer.step()

    return step


def _first_call(report, rounds, quick):
    seen = probe.run("first-loss", "none")
    first, second = seen["calls"]
    report.write("### First call in a fresh process, kernels cached")
    report.rows(
        [
            "",
            "import torch",
            "import tiebench.losses.relaxed",
            "first AP_s with gradient",
            "second",
            "difference",
        ],
        [
            (
                "compiled",
                duration(seen["torch"]),
                duration(seen["import"]),
                duration(first),
                duration(second),
                duration(max(first - second, 0)),
            )
        ],
    )
    return [
        ("first loss of a process, kernels cached: pause", "at most 1 s", duration(max(first - second, 0)))
    ]
