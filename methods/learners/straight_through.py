"""Binary layers whose gradient is passed on, and the losses that unsupervised methods put on them."""

import torch
from torch.nn.functional import cosine_similarity


def sign_straight_through(outputs):
    """+1 where outputs > 0, else -1; the gradient passes unchanged (GreedyHash)."""
    signs = torch.where(outputs > 0, 1.0, -1.0).to(outputs.dtype)
    return outputs + (signs - outputs).detach()


def cubic_penalty(outputs):
    """Mean of ||u| - 1|^3."""
    return (outputs.abs() - 1).abs().pow(3).mean()


def cosine_agreement(codes, features):
    """Mean of (cos(b_i, b_j) - cos(x_i, x_j))^2 over pairs of an item of the first half of a batch and the
    one at the same place of the second half; the last item of an odd batch is left out.

    codes (M, bits), features (M, d); the features are constants.
    """
    half = len(codes) // 2
    of_codes = cosine_similarity(codes[:half], codes[half : 2 * half])
    with torch.no_grad():
        of_features = cosine_similarity(features[:half], features[half : 2 * half])
    return (of_codes - of_features).square().mean()
