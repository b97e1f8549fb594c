"""Other ways to the listwise objectives and their gradient: the paper's appendix, and plain autograd.

Both take the value of an objective as a function of its histograms, so that only the parts that cost time
differ: the soft histograms and the way back from them to the codes.
"""

import torch


def ap_simplified(c, g, ideal):
    """AP_s (appendix, eq. (ap_s)). c, g: soft histograms of all and of the relevant items, (M, L)."""
    before, before_g = c.cumsum(1) - c, g.cumsum(1) - g
    summand = g * (2 * before_g + g + 1) / (2 * before + c + 1)
    return _over(summand.sum(1), ideal, 0.0)


def dcg_simplified(c, g, ideal):
    """DCG_s (appendix, eq. (dcg_s)) over the ideal DCG. g: histogram weighted by gain, (M, L)."""
    middle = c.cumsum(1) - 0.5 * c + 1.5
    return _over((g / torch.log2(middle)).sum(1), ideal, 1.0)


def mutual_information(c, g, ideal):
    """I(D; C) in bits (Cakir et al., ICCV 2017) of distance and relevance, as H(D) - H(D | C).

    c, g: as for AP_s, from kernels whose shares of an item sum to 1; a query with one kind of items has 0.
    """
    whole, relevant = c.sum(1), g.sum(1)
    both = (relevant > 0.5) & (whole - relevant > 0.5)
    share = relevant / whole
    value = _entropy(c) - share * _entropy(g) - (1 - share) * _entropy(c - g)
    return torch.where(both, value, torch.zeros_like(value))


def _entropy(histogram):
    shares = histogram / histogram.sum(1, keepdim=True).clamp(min=1e-12)
    # The logarithm of an empty bin has no gradient that would matter, but would be infinite.
    return -(shares * torch.log2(shares.clamp(min=1e-30))).sum(1)


def _over(value, ideal, empty):
    # A query with nothing relevant has the value `empty`, without gradient.
    return torch.where(ideal > 0, value / torch.where(ideal > 0, ideal, 1.0), empty)


OBJECTIVES = {"ap_s": ap_simplified, "dcg_s": dcg_simplified, "mutual information": mutual_information}


def _setting(codes, affinity, bins, objective):
    """Distances (M, M), bin width, the levels, their gains, and what the objective is divided by (M,)."""
    items, bits = codes.shape
    distances = 0.5 * (bits - codes @ codes.T)
    levels = torch.unique(affinity)
    others = ~torch.eye(items, dtype=torch.bool, device=codes.device)
    if objective != "dcg_s":
        gains = (levels > 0).to(codes.dtype)
        ideal = ((affinity > 0) & others).sum(1).to(codes.dtype)
    else:
        gains = torch.exp2(levels.to(codes.dtype)) - 1
        ranked = ((torch.exp2(affinity.to(codes.dtype)) - 1) * others).sort(1, descending=True).values
        ideal = (ranked / torch.arange(2, items + 2, dtype=codes.dtype).log2()).sum(1)
    return distances, bits / bins, levels, gains, ideal, others


def appendix(codes, affinity, bins, objective):
    """Mean objective and its gradient by the appendix 'Efficient Minibatch Backpropagation'.

    A soft histogram for each affinity level, bin after bin, each bin an M x M matrix of shares; alpha
    (eq. (alpha_dv)) from the (M, L) histograms; then the last equation of that section, the sum over bins and
    levels of A B + B A, where the diagonal A only scales rows and columns. B is used as the equation has it,
    symmetric. codes: float (M, b); affinity: integers (M, M), symmetric. Returns (float, (M, b)).
    """
    with torch.no_grad():
        distances, width, levels, gains, ideal, others = _setting(codes, affinity, bins, objective)
        masks = [((affinity == level) & others).to(codes.dtype) for level in levels]
        histograms = torch.empty(len(levels), len(codes), bins + 1, dtype=codes.dtype)
        for d in range(bins + 1):
            share = (1 - (distances - d * width).abs() / width).clamp(min=0)
            for v, mask in enumerate(masks):
                histograms[v, :, d] = (share * mask).sum(1)
    histograms.requires_grad_()
    value = OBJECTIVES[objective](histograms.sum(0), torch.tensordot(gains, histograms, 1), ideal).mean()
    (alpha,) = torch.autograd.grad(value, histograms)
    with torch.no_grad():
        total = torch.zeros_like(distances)
        for d in range(bins + 1):
            offset = distances - d * width
            slope = -offset.sign() * (offset.abs() < width) / width
            for v, mask in enumerate(masks):
                b = slope * mask
                a = alpha[v, :, d]
                total += a[:, None] * b + b * a[None, :]
        return value.item(), -0.5 * (total @ codes)


def autograd(codes, affinity, bins, objective):
    """The same from M x M x (bins + 1) soft shares, differentiated by torch. Returns (float, (M, b))."""
    codes = codes.detach().requires_grad_()
    distances, width, levels, gains, ideal, others = _setting(codes, affinity, bins, objective)
    centres = torch.arange(bins + 1, dtype=codes.dtype, device=codes.device) * width
    shares = (1 - (distances[:, :, None] - centres).abs() / width).clamp(min=0)
    shares = shares * others[:, :, None]
    weights = gains[torch.searchsorted(levels, affinity)]
    c = shares.sum(1)
    g = (shares * weights[:, :, None]).sum(1)
    value = OBJECTIVES[objective](c, g, ideal).mean()
    value.backward()
    return value.item(), codes.grad
