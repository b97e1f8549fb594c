"""Terms that any deep loss can add so that raw scores settle at -1 and +1, by name."""

import torch


def hswd(outputs: torch.Tensor) -> torch.Tensor:
    """Squared Wasserstein distance of each bit's scores to balanced random signs, averaged over bits.

    outputs: float (M, bits). In one dimension the best matching of two samples of equal size is that of their
    sorted values. Doan, Yang, Li. One Loss for Quantization: Deep Hashing with Discrete Wasserstein
    Distributional Matching. CVPR 2022.
    """
    signs = torch.randint(0, 2, outputs.shape).mul_(2).sub_(1).to(outputs)
    return (outputs.sort(dim=0).values - signs.sort(dim=0).values).square().mean()


QUANTISERS = {"hswd": hswd}
