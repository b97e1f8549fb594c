"""Losses between items and learned proxies of labels, with margins at what codes of the length can reach."""

from dataclasses import dataclass

import torch
from torch.nn.functional import normalize

from methods.base.deep import DeepHashing
from methods.class_codes.linear_codes import linear_code_cosine


@dataclass(kw_only=True)
class MarginProxies(DeepHashing):
    """Base of deep methods whose criterion is one learned proxy per label, which has a rate of its own.

    zeta None: the cosine of two codes at the largest known minimum distance (`linear_code_cosine`).
    """

    proxy_lr_multiplier: float = 1.0
    zeta: float | None = None

    def build_criterion(self, training_set):
        proxies = torch.empty(training_set.classes, self.bits)
        torch.nn.init.kaiming_normal_(proxies, mode="fan_out")
        return torch.nn.ParameterDict({"proxies": torch.nn.Parameter(proxies)})

    def rate_and_decay(self, name):
        rate, decay = super().rate_and_decay(name)
        return (self.proxy_lr_multiplier if name.startswith("criterion.") else rate), decay

    def cosines(self, outputs, batch):
        """Cosines of items with all proxies, float (M, classes)."""
        return normalize(outputs) @ normalize(batch.training.criterion["proxies"]).T

    def margin(self, labels):
        """Zeta of so many labels."""
        return linear_code_cosine(self.bits, labels) if self.zeta is None else self.zeta
