"""DHD: learned proxies of classes, and codes of strong views that follow those of weak views of an item.

Jang, Gu, Ko, Kang, Cho. Deep Hash Distillation for Image Retrieval. ECCV 2022. Authors' code:
youngkyunJang/Deep-Hash-Distillation.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch.nn.functional import cosine_similarity, log_softmax, normalize

from methods.base import Refusal
from methods.base.deep import DeepHashing
from methods.base.heads import hash_layer
from methods.base.labels import label_matrix
from methods.learners.views import check_views, noisy_view

_LEAST_LOGARITHM = -100.0  # of a probability, as PyTorch's binary cross-entropy has it


@dataclass(kw_only=True)
class DHD(DeepHashing):
    r"""Minimises the mean over items of

    $$
    -\sum_c \frac{y_c}{\left| y \right|} \, \log \,
    \frac{\exp(\cos(h_T, p_c) / \tau)}{\sum_a \exp(\cos(h_T, p_a) / \tau)}
    + \lambda_1 (1 - \cos(h_S, h_T)) + \lambda_2 \underset{k}{\mathrm{mean}} \left[
    \mathrm{BCE}(g(h_{Tk} - 1), t_k) + \mathrm{BCE}(g(h_{Tk} + 1), 1 - t_k) \right]
    $$

    with $h_T$ and $h_S$ the outputs tanh(u) for a weak and a strong view of the item, in the second term
    $h_T$ held fixed; u layer-normalised outputs of a linear layer without bias; $p_c$ proxies, which are
    learned; $g(x) = \exp(-x^2 / 2 s^2)$ and $t = [h_T > 0]$. $\tau$ is the `temperature`, $\lambda_1$ the
    `distillation`, $\lambda_2$ the `quantisation`, s the `deviation`.

    Views of vectors: each value is dropped with probability `view_dropout`, the others are scaled up, and
    normal noise of `view_noise` times the root mean square of the batch's values is added. Views of images
    are those of horizontal_flip and random_crop; the authors' resized crops, colour jitter, grey and blur are
    not made. A strong view is that of every item, a weak one that of an item with probability `weak_share`
    (0.2 with AlexNet, 0.5 with other networks), else the item itself. The authors fine-tune with Adam at
    3e-4, the network at 0.05 times that, weight decay 1e-5, batches of 128, up to 500 epochs.
    """

    title = "DHD"
    paper = "https://www.ecva.net/papers/eccv_2022/papers_ECCV/papers/136740345.pdf"
    colour = "#7570B3"
    marker = "d"
    supervision = "labels"
    family = "classwise"
    space = {
        "learning_rate": {"log_uniform": [1e-4, 3e-2]},
        "temperature": [0.1, 0.2, 0.5],
        "distillation": [0.0, 0.1, 1.0],
        "quantisation": [0.0, 0.1, 1.0],
    }
    bounds = {"view_dropout": "[0, 1)", "temperature": "(0, inf)", "deviation": "(0, inf)"}

    optimiser: Literal["sgd", "adam", "adamw", "rmsprop"] = "adam"
    learning_rate: float = 1e-2
    schedule: Literal["step", "cosine"] = "cosine"
    weight_decay: float = 1e-5
    backbone_lr_multiplier: float = 0.05
    epochs: int = 60
    batch_size: int = 128
    temperature: float = 0.2
    distillation: float = 0.1
    quantisation: float = 0.1
    deviation: float = 0.5
    weak_share: float = 0.2
    view_dropout: float = 0.2
    view_noise: float = 0.1

    _strong: ClassVar[bool] = False  # whether `augment` makes the strong view

    def prepare(self, training_set):
        label_matrix(training_set, "dhd")
        if self.bits < 2:
            raise Refusal("dhd needs at least 2 bits: layer normalisation makes a single one constant")
        if self.distillation or self.weak_share:
            check_views(self, "dhd")

    def hash_layer(self, width):
        layer = hash_layer(width, self.bits, self.initial_deviation, bias=False)
        return torch.nn.Sequential(layer, torch.nn.LayerNorm(self.bits))

    def build_criterion(self, training_set):
        proxies = torch.empty(training_set.classes, self.bits)
        torch.nn.init.xavier_uniform_(proxies, gain=torch.nn.init.calculate_gain("tanh"))
        return torch.nn.ParameterDict({"proxies": torch.nn.Parameter(proxies)})

    def augment(self, items, generator):
        if self.backbone is None:
            view = noisy_view(items, self.view_dropout, self.view_noise, generator)
        else:
            view = super().augment(items, generator)
        if self._strong:
            return view
        chosen = torch.from_numpy(generator.random(len(items)) < self.weak_share).to(items.device)
        return torch.where(chosen.reshape(-1, *[1] * (items.ndim - 1)), view, items)

    def loss(self, outputs, batch):
        labels, weak = batch.labels, torch.tanh(outputs)
        targets = labels / labels.sum(dim=1, keepdim=True).clamp(min=1)
        cosines = normalize(weak) @ normalize(batch.training.criterion["proxies"]).T
        entropy = -(targets * log_softmax(cosines / self.temperature, dim=1)).sum(dim=1).mean()
        value = entropy + self.quantisation * rounding(weak, self.deviation)
        if self.distillation:
            apart = 1 - cosine_similarity(torch.tanh(self._of_strong_view(batch)), weak.detach())
            value = value + self.distillation * apart.mean()
        return value

    def _of_strong_view(self, batch):
        """Scores of the second view, for which `augment` is told that it is the strong one."""
        self._strong = True  # type: ignore[misc]
        try:
            return batch.second
        finally:
            del self._strong


def rounding(codes, deviation):
    """Mean over items and bits of the binary cross-entropies of g(h - 1) and g(h + 1), unnormalised normal
    densities, with the sign of h as target."""
    signs = torch.where(codes > 0, 1.0, -1.0).to(codes.dtype)
    near = ((codes - signs) / deviation).square() / 2  # -log g at the sign
    far = ((codes + signs) / deviation).square() / 2
    # log(1 - e^-x) of the far one: its target is 0.
    complement = torch.log(-torch.expm1(-far)).clamp(min=_LEAST_LOGARITHM)
    return (near - complement).mean()
