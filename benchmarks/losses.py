"""Training losses: listwise objectives and their gradient, beside the paper's appendix and plain autograd."""

import torch

from benchmarks import loss_peers as peers
from benchmarks import probe
from benchmarks.report import duration, progress, rounded
from benchmarks.timing import agree, interleave
from tiebench.losses import relaxed

BITS = 48
FEATURES = 4096
COMPILED, TENSORS, APPENDIX, AUTOGRAD = "compiled", "torch only", "appendix formulation", "plain autograd"
PRODUCTS = "limit: its three matrix products"
AP_TARGETS = {APPENDIX: "at least 60", AUTOGRAD: "at least 80"}
TOLERANCE = 1e-4  # relative, float32

_PRODUCT = {
    "ap_s": relaxed.average_precision,
    "dcg_s": relaxed.ndcg,
    "mutual information": relaxed.mutual_information,
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
    codes = codes.detach().requires_grad_()
    value = _PRODUCT[objective](codes, affinity, bins, backend=backend).mean()
    value.backward()
    return value.item(), codes.grad


def ways(codes, affinity, bins, objective):
    """The competitors: name -> function that returns the mean objective and its gradient."""
    return {
        COMPILED: lambda: product(codes, affinity, bins, objective, "compiled"),
        TENSORS: lambda: product(codes, affinity, bins, objective, "torch"),
        APPENDIX: lambda: peers.appendix(codes, affinity, bins, objective),
        AUTOGRAD: lambda: peers.autograd(codes, affinity, bins, objective),
    }


def check(competitors, what):
    """Compare all values and gradients with the first competitor's. Raises `Disagreement`."""
    (_, reference), *others = competitors.items()
    value, gradient = reference()
    for name, call in others:
        other_value, other_gradient = call()
        agree(f"{what}, value: {name}", other_value, value, TOLERANCE)
        agree(f"{what}, gradient: {name}", other_gradient, gradient, TOLERANCE)


def run(report, quick):
    """Print all tables."""
    torch.set_num_threads(1)
    rounds = 5 if quick else 11
    report.write(
        "## Losses: objective and gradient with respect to the codes",
        "float32; every item of a batch of M is a query against the others. All implementations were "
        f"checked in this run to agree to {TOLERANCE:g} (value; gradient relative to its largest entry).",
    )
    for section in (_objectives, _spreads, _steps):
        progress(f"losses: {section.__name__.strip('_')}")
        section(report, rounds, quick)
    progress("losses: first call")
    _first_call(report)


def _objectives(report, rounds, quick):
    names = {
        "ap_s": "AP_s",
        "dcg_s": "DCG_s, 4 levels",
        "mutual information": "mutual information (MIHash)",
    }
    for objective, name in names.items():
        codes, affinity = batch(256, levels=4 if objective.startswith("dcg") else 2)
        competitors = ways(codes, affinity, BITS, objective)
        check(competitors, name)
        # No way through the distances is faster.
        scratch = torch.empty(256, 256)
        competitors[PRODUCTS] = lambda a=codes, s=scratch: (torch.mm(a, a.T, out=s), s @ a, s.T @ a)
        title = f"{name}, M = 256, {BITS} bits, bins = {BITS}"
        seen = report.compare(title, competitors, rounds, COMPILED)
        ours = f"relaxed {name} and its gradient, M = 256, {BITS} bits"
        for peer in (APPENDIX, AUTOGRAD):
            ratio = seen[peer].ratio_to(seen[COMPILED])
            report.peer(ours, peer, ratio)
            if objective == "ap_s":
                report.target(f"{name}: {peer} over {COMPILED}", AP_TARGETS[peer], ratio)
        report.peer(f"{ours}, without compiled kernels", APPENDIX, seen[APPENDIX].ratio_to(seen[TENSORS]))


def _spreads(report, rounds, quick):
    settings = {
        "DCG_s over 2, 4, 8 levels": {
            f"{levels} levels": (*batch(256, levels=levels), BITS, "dcg_s") for levels in (2, 4, 8)
        },
        "AP_s over bins b/4 .. 2b": {
            f"{bins} bins": (*batch(256), bins, "ap_s") for bins in (BITS // 4, BITS // 2, BITS, 2 * BITS)
        },
    }
    for title, chosen in settings.items():
        competitors = {}
        for name, arguments in chosen.items():
            found = ways(*arguments)
            check(found, f"{title}: {name}")
            competitors[name] = found[COMPILED]
        title = f"compiled {title}"
        seen = report.compare(f"{title}, M = 256, {BITS} bits", competitors, 3 * rounds, next(iter(chosen)))
        medians = [one.median for one in seen.values()]
        spread = f"{max(medians) / min(medians):.3f}"
        report.target(f"{title}: slowest over fastest", "at most 1.05", spread)


def _steps(report, rounds, quick):
    report.write(
        f"### A step of stochastic gradient descent, Linear({FEATURES}, {BITS}) + tanh",
        "The base back-propagates a given gradient of the codes; the others back-propagate the mean "
        "objective.",
    )
    ratios, sizes = [], (64, 256) if quick else (64, 128, 256)
    for items in sizes:
        _, affinity = batch(items)
        competitors = {f"M = {items}: no loss": _step(items, None)}
        for objective, name in (("ap_s", "AP_s"), ("dcg_s", "DCG_s"), ("mutual information", "MIHash")):

            def loss(codes, function=_PRODUCT[objective], affinity=affinity):
                return -function(codes, affinity, BITS).mean()

            competitors[f"M = {items}: {name}"] = _step(items, loss)
        seen = interleave(competitors, rounds, least_seconds=0.02)
        base, with_ap, *_ = seen
        report.times(seen, base)
        ratios.append(rounded(seen[with_ap].ratio_to(seen[base])))
        report.target(f"step with AP_s over without, M = {items}", "at most 1.15", ratios[-1])
    batches = ", ".join(map(str, sizes))
    report.wait(
        f"a step of SGD with relaxed AP, batches of {batches}", f"{', '.join(ratios)} times one without"
    )


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


def _first_call(report):
    seen = probe.run("loss")
    report.write("### First call in a fresh process, kernels cached")
    head = ["import torch", "import tiebench.losses.relaxed", "first AP_s, gradient", "second", "difference"]
    seconds = (seen["torch"], seen["import"], *seen["calls"], probe.pause(seen))
    report.rows(head, [[*map(duration, seconds)]])
    quantity = "first loss of a process, kernels cached: pause"
    report.target(quantity, "at most 1 s", duration(probe.pause(seen)))
    report.wait(quantity, duration(probe.pause(seen)))
