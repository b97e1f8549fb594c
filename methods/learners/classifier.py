"""Linear classifiers on the items: what codes of a decision are made of."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from methods.base import HashingMethod, check_settings


@dataclass(kw_only=True)
class ClassifierHashing(HashingMethod):
    """Encodes the decision of a logistic regression, `fit_classifier`, as `codes_of` says.

    C: inverse strength of the L2 penalty, as in scikit-learn's LogisticRegression.
    """

    learned: ClassVar[tuple[str, ...]] = ("coefficients", "intercepts")
    bounds: ClassVar[dict[str, str]] = {"C": "(0, inf)", "max_iterations": "[1, inf)"}

    C: float = 10.0
    max_iterations: int = 1000

    def fit_classifier(self, items, labels):
        """Softmax regression of classes int64 (n,) from 0, or one logistic regression for each column of
        labels (n, L); sets `coefficients` (d, C) and `intercepts` (C,). Returns the training accuracy (of
        columns, their mean)."""
        from sklearn.linear_model import LogisticRegression

        check_settings(self)
        items = items.reshape(len(items), -1)

        def fitted(targets):
            return LogisticRegression(C=self.C, max_iter=self.max_iterations).fit(items, targets)

        if labels.ndim == 1:
            model = fitted(labels)
            self.coefficients, self.intercepts = model.coef_.T, model.intercept_
            if len(model.classes_) == 2:  # scikit-learn keeps one function for two classes
                self.coefficients = np.hstack([-self.coefficients, self.coefficients]) / 2
                self.intercepts = np.concatenate([-self.intercepts, self.intercepts]) / 2
            return float(np.mean(self.scores(items).argmax(axis=1) == labels))
        columns = [fitted(column) if 0 < column.mean() < 1 else None for column in labels.T]
        self.coefficients = np.stack(
            [np.zeros(items.shape[1]) if model is None else model.coef_[0] for model in columns], axis=1
        )
        constant = np.where(labels.mean(axis=0) > 0, 1.0, -1.0)
        self.intercepts = np.array(
            [constant[i] if model is None else model.intercept_[0] for i, model in enumerate(columns)]
        )
        return float(np.mean((self.scores(items) > 0) == (labels > 0)))

    def scores(self, items):
        """Scores of the classes, (n, C): the largest, or each positive one, is the decision."""
        return items.reshape(len(items), -1) @ self.coefficients + self.intercepts

    def codes_of(self, scores):
        """Codes of scores (n, C): bool (n, bits)."""
        # Abstract: conformance tests encode with every method.
        raise NotImplementedError(f"{type(self).__name__} does not define codes_of")

    def encode_block(self, items):
        return self.codes_of(self.scores(items))
