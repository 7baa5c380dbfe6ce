"""Multi-instance MKL whose settings are chosen by cross-validation inside the training bags."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from typing import Any, Self, TypeAlias

import numpy as np

from kernelweave._threads import blas_threads
from kernelweave._typing import Vector
from kernelweave.estimators.base import fitted_attributes, reset
from kernelweave.estimators.progress import count_bar
from kernelweave.estimators.validation import Fold, as_bank, mean_held_out
from kernelweave.weak_labels.multi_instance import (
    POOLS,
    BagProblem,
    MultiInstanceMKLClassifier,
    best_cut,
)

# The parameters of `MultiInstanceMKLClassifier` that are searched, from those that cost a kernel matrix each
# to those that cost nothing.
Setting: TypeAlias = tuple[Any, ...]
SEARCHED = ("centering", "C", "theta", "positive_share", "negatives", "max_rounds", "pooling")


@dataclass(eq=False, repr=False, kw_only=True)
class MultiInstanceMKLClassifierCV(MultiInstanceMKLClassifier):
    r"""`MultiInstanceMKLClassifier` with its settings chosen by cross-validation inside the training bags.

    Each of these parameters is one value or a list of values to try: all combinations of them are compared
    by the share of held-out bags that they predict right, with the cut that suits their scores best. Several
    numbers of rounds and several poolings cost no more than one of them.

    Parameters
    ----------
    bank : KernelBank or None, default=None
        Kernels of the instances, as in `MultiInstanceMKLClassifier`.
    C : default=(1.0, 10.0, 100.0)
    centering : default=(False, True)
    max_rounds : default=(1, 3, 7)
    pooling : default=("max", "softmax", "mean")
    theta, positive_share, negatives : as in `MultiInstanceMKLClassifier`, or lists
    cv : int, splitter or pairs of indices, default=5
        Folds that hold all bags out equally often; a number of them is stratified and shuffled.
    ambiguity, threshold, class_weight, tol, max_iter, memory_limit, random_state, verbose : as in
        `MultiInstanceMKLClassifier`; threshold="cv" takes the cut of the held-out scores

    Attributes
    ----------
    best_params_ : dict of the parameters chosen; of equally good ones the first in the order of the lists
    best_score_ : share of held-out bags that they predict right, which being the best of many is optimistic
    cv_results_ : dict with ``params``, a list of dicts, and their ``mean_test_score``
    candidates_, threshold_, certificate_, ... : those of `MultiInstanceMKLClassifier`, of the final fit

    Notes
    -----
    [Xu14, Sec. 4.5.3]. Differs from the paper: it does not say how its settings were chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MultiInstanceMKLClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(4, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0  # one instance makes a bag positive
    >>> model = MultiInstanceMKLClassifierCV(cv=2).fit(bags, y)
    >>> model.predict(bags[:4])
    array([0, 1, 0, 1])

    """

    C: Any = (1.0, 10.0, 100.0)
    centering: Any = (False, True)
    max_rounds: Any = (1, 3, 7)
    pooling: Any = ("max", "softmax", "mean")
    cv: Any = 5

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the settings, then learn from all bags with them; ``groups`` are for the splitter ``cv``."""
        settings = self._settings()
        for setting in settings:
            self._model(setting)._check_parameters()
        reset(self)
        bags = self._as_bags(X, reset=True)
        signs, weight, price = self._encode_labels(y, sample_weight, len(bags))
        used = np.flatnonzero(weight)
        if np.bincount(signs[used] > 0).min() < 2:
            raise ValueError("Settings are compared on held-out bags: each class needs at least 2 bags.")
        folds = self._folds(signs, used, groups)
        fitted = as_bank(self.bank).fit(bags.instances)
        scores: dict[Setting, Vector] = {}
        with blas_threads(1), count_bar(self.verbose, "searches") as tick:
            paths = self._paths(settings)
            for models in paths.values():
                centre = models[0]._choose_centring(float(weight[signs > 0].sum() / weight.sum()))
                _, grams = self._rescaled(fitted, centre)
                for model in models:
                    problem = BagProblem(grams, bags.members, signs, model.C * price)
                    scores |= self._held_out(model, problem, folds)
                    tick(sum(map(len, paths.values())))
        self._choose(settings, scores, signs, price)
        best = self._model(self.best_params_).fit(X, y, sample_weight)
        for name, value in fitted_attributes(best).items():
            setattr(self, name, value)
        if self.threshold == "cv":
            self.threshold_ = best_cut(*_in_use(scores[tuple(self.best_params_.values())], signs, price))
            self.intercept_ = best.intercept_ - self.threshold_
        return self

    def pool(self, values: Vector) -> float:
        """Return the value of a bag from those of its instances, as the chosen ``pooling`` says."""
        return POOLS[self.best_params_["pooling"]](values)

    def _settings(self) -> list[dict[str, Any]]:
        """Return all combinations of the parameters that are searched."""
        lists = (_as_list(getattr(self, name)) for name in SEARCHED)
        return [dict(zip(SEARCHED, each, strict=True)) for each in product(*lists)]

    def _model(self, setting: dict[str, Any]) -> MultiInstanceMKLClassifier:
        """Return the classifier of this setting, whose scores are cut at zero."""
        return MultiInstanceMKLClassifier(**{**self.get_params(deep=False), **setting, "threshold": "zero"})

    def _paths(self, settings: list[dict[str, Any]]) -> dict[Any, list[MultiInstanceMKLClassifier]]:
        """Return a classifier for all rounds and poolings of the same other settings, by centring."""
        most = max(setting["max_rounds"] for setting in settings)
        pooling = settings[0]["pooling"]
        longest = [each for each in settings if (each["max_rounds"], each["pooling"]) == (most, pooling)]
        by_centring: dict[Any, list[MultiInstanceMKLClassifier]] = {}
        for setting in longest:
            by_centring.setdefault(setting["centering"], []).append(self._model(setting))
        return by_centring

    def _held_out(
        self, model: MultiInstanceMKLClassifier, problem: BagProblem, folds: list[Fold]
    ) -> dict[Setting, Vector]:
        """Return the scores of held-out bags after every number of rounds and by every pooling."""
        values: dict[Setting, list[Vector]] = defaultdict(list)
        own = {name: getattr(model, name) for name in SEARCHED}
        rounds, poolings = _as_list(self.max_rounds), _as_list(self.pooling)
        for train, test in folds:
            fits = list(model._fits(problem.subset(train)))
            for number in rounds:
                found = fits[min(number, len(fits)) - 1].values(problem.grams)
                for pooling in poolings:
                    setting = tuple({**own, "max_rounds": number, "pooling": pooling}.values())
                    pooled = [POOLS[pooling](found[problem.members[bag]]) for bag in test]
                    values[setting].append(np.array(pooled))
        scores = {setting: np.zeros(problem.signs.size) for setting in values}
        for setting, parts in values.items():
            mean = mean_held_out(folds, parts)
            scores[setting][: mean.size] = mean
        return scores

    def _choose(
        self, settings: list[dict[str, Any]], scores: dict[Setting, Vector], signs: Vector, price: Vector
    ) -> None:
        """Set the results of all settings and the first of the best."""
        shares = [_share_right(*_in_use(scores[tuple(each.values())], signs, price)) for each in settings]
        self.cv_results_ = {"params": settings, "mean_test_score": np.array(shares)}
        best = int(np.argmax(shares))
        self.best_params_, self.best_score_ = settings[best], shares[best]


def _as_list(values: Any) -> list[Any]:
    """Return the values to try of a parameter: those of a list, or the single one."""
    return list(values) if isinstance(values, list | tuple) else [values]


def _in_use(scores: Vector, signs: Vector, price: Vector) -> tuple[Vector, Vector, Vector]:
    """Return the scores, signs and prices of bags whose errors cost something."""
    used = price > 0.0
    return scores[used], signs[used], price[used]


def _share_right(scores: Vector, signs: Vector, price: Vector) -> float:
    """Return the share of the price that is not lost by the best cut."""
    right = (scores > best_cut(scores, signs, price)) == (signs > 0.0)
    return float(price @ right / price.sum())
