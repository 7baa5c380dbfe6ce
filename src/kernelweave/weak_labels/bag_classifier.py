"""What classifiers of bags share: reading them, a threshold by cross-validation, scores of instances."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedKFold

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.estimators.answers import winners
from kernelweave.estimators.base import forget
from kernelweave.estimators.inputs import check_input, is_precomputed
from kernelweave.estimators.parameters import check_choice, check_count
from kernelweave.estimators.progress import count_bar
from kernelweave.estimators.splits import Fold, stratified_folds
from kernelweave.estimators.targets import encode_labels, sample_weights
from kernelweave.views.bags import Bags, as_bags, is_bags
from kernelweave.weak_labels.ambiguous import AmbiguousEstimator, point_scores
from kernelweave.weak_labels.bag_machines import BagFit
from kernelweave.weak_labels.partial_labels import is_balanced

Members = Sequence[Indices]


@dataclass(eq=False, repr=False, kw_only=True)
class BagClassifier(ClassifierMixin, AmbiguousEstimator):  # type: ignore[misc]
    """A classifier of bags: instances are scored, a bag by pooling its instances, and a threshold cuts."""

    threshold: str = "cv"
    cv: Any = 3
    centering: Any = "auto"
    class_weight: Any = None

    def pool(self, values: Vector) -> float:
        """Return the value of a bag from those of its instances: the highest."""
        return float(values.max())

    @abstractmethod
    def _train(self, grams: list[Matrix], members: Members, signs: Vector, prices: Vector) -> BagFit:
        """Train on some bags, ``members`` being rows of the kernels of all instances."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from bags (`Bags`, or a list or object array of tables of instances) and one label per bag.

        ``sample_weight`` multiplies C by bag. From bags of weight 0 nothing is learnt but the kernels.
        """
        self._check_parameters()
        forget(self)
        bags = self._read(X, reset=True)
        self.classes_, index = encode_labels(y, len(bags))
        if self.classes_.size != 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: bags have 2 "
                f"classes, got {self.classes_.size}; use scikit-learn's OneVsRestClassifier for more."
            )
        signs = np.where(index == 1, 1.0, -1.0)
        weight = sample_weights(sample_weight, None, self.classes_, index)
        prices = self.C * sample_weights(weight, self.class_weight, self.classes_, index)
        fitted = self._fit_bank(bags.instances)
        self.centered_ = self._centres(float(weight[signs > 0].sum() / weight.sum()))
        with blas_threads(1), count_bar(self.verbose, "folds") as tick:
            kernels, grams = self._kernels(fitted, self.centered_)
            self.threshold_ = self._threshold(grams, bags.members, signs, prices, tick)
            fit = self._train(grams, bags.members, signs, prices)
            values = fit.values(grams, np.arange(int(bags.sizes.sum())))
        self._keep_fit(fit, bags, signs, values)
        self.intercept_ = np.array([fit.intercept - self.threshold_])
        self.point_coef_ = fit.coef[None]
        self.bank_ = kernels.for_prediction()
        self.kernel_names_ = fitted.names
        return self

    def decision_function(self, X: Any) -> Vector:
        """Return one score per bag, above zero for ``classes_[1]``."""
        bags, values = self._scored(X)
        return np.array([self.pool(part) for part in bags.split(values)])

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each bag."""
        return winners(self.decision_function(X), self.classes_)

    def instance_decision_function(self, X: Any) -> list[Vector]:
        """Return the scores of the instances, one array per bag."""
        bags, values = self._scored(X)
        return bags.split(values)

    def predict_instances(self, X: Any) -> list[AnyArray]:
        """Return the class of each instance, one array per bag."""
        values = self.instance_decision_function(X)
        return [winners(part, self.classes_) for part in values]

    def combined_kernel(self, X: Any, Z: Any = None) -> Matrix:
        """Return the learnt kernel between the instances of bags X and Z (None: the training ones)."""
        X = as_bags(X).instances
        return super().combined_kernel(X, None if Z is None else as_bags(Z).instances)

    def _read(self, X: Any, *, reset: bool) -> Bags:
        if is_precomputed(self.bank):
            raise ValueError(
                "Bags hold instances, not kernel values: bank='precomputed' does not work; use a KernelBank."
            )
        if is_bags(X):
            bags = as_bags(X)[:]
            bags.instances = check_input(self, bags.instances, reset=reset)
            return bags
        return as_bags(check_input(self, X, reset=reset))  # a table: every sample is a bag of its own

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _scored(self, X: Any) -> tuple[Bags, Vector]:
        """Return bags with the values of all their instances."""
        self._require_fit()
        bags = self._read(X, reset=False)
        values = point_scores(self.bank_, bags.instances, self.point_coef_)[:, 0] + self.intercept_[0]
        return bags, values

    def _check_parameters(self) -> None:
        self._check_common()
        check_choice("threshold", self.threshold, ("cv", "zero"))
        if isinstance(self.cv, Integral) and not isinstance(self.cv, bool):
            check_count("cv", self.cv, least=2)
        elif isinstance(self.cv, str) or not (hasattr(self.cv, "split") or isinstance(self.cv, Iterable)):
            raise ValueError(
                f"cv must be a number of folds from 2 on, a splitter or pairs of indices; got {self.cv!r}."
            )
        if not isinstance(self.centering, bool | np.bool_) and self.centering != "auto":
            raise ValueError(f"centering must be 'auto', True or False; got {self.centering!r}.")

    def _centres(self, share: float) -> bool:
        return is_balanced(share) if self.centering == "auto" else bool(self.centering)

    def _threshold(
        self, grams: list[Matrix], members: Members, signs: Vector, prices: Vector, tick: Any
    ) -> float:
        """Return the cut with fewest errors on scores of bags that were left out of training."""
        if self.threshold == "zero":
            return 0.0
        used = np.flatnonzero(prices)
        rare = int(np.bincount(signs[used] > 0).min())
        if rare < 2:
            warnings.warn(
                "threshold='cv' holds out bags of either class, but one class has a single bag: scores are "
                "cut at zero, as with threshold='zero'.",
                stacklevel=3,
            )
            return 0.0
        scores = np.empty(signs.size)
        folds = self._folds(signs, used, rare)
        for kept, held in folds:
            fit = self._train(grams, [members[bag] for bag in kept], signs[kept], prices[kept])
            scores[held] = [self.pool(fit.values(grams, members[bag])) for bag in held]
            tick(len(folds) + 1)
        return best_cut(scores[used], signs[used], prices[used])

    def _folds(self, signs: Vector, used: Indices, rare: int) -> list[Fold]:
        """Return folds of the bags in use; each of them is held out once."""
        index = (signs > 0).astype(np.intp)
        if isinstance(self.cv, Integral):
            splitter = StratifiedKFold(min(int(self.cv), rare), shuffle=True, random_state=self.random_state)
            return [(used[kept], used[held]) for kept, held in stratified_folds(splitter, index[used])]
        folds = stratified_folds(self.cv, index)  # indices are those of all bags
        return [(np.intersect1d(kept, used), np.intersect1d(held, used)) for kept, held in folds]

    def _keep_fit(self, fit: BagFit, bags: Bags, signs: Vector, values: Vector) -> None:  # noqa: ARG002
        """Set what else was learnt; ``values`` are those of the instances."""
        result = fit.result
        self.certificate_ = result.certificate
        self.duality_gap_, self.objective_ = result.certificate.relative_gap, result.certificate.upper
        self.n_iter_ = fit.n_machines


def best_cut(scores: Vector, signs: Vector, weight: Vector) -> float:
    """Return the threshold with the least weight of errors; of several the one in the widest gap."""
    order = np.argsort(scores)
    scores, signs, weight = scores[order], signs[order], weight[order]
    # Cut k puts the k lowest scores on the negative side.
    missed = np.concatenate([[0.0], np.cumsum(weight * (signs > 0))])
    wrong = np.concatenate([np.cumsum((weight * (signs < 0))[::-1])[::-1], [0.0]])
    spread = float(scores[-1] - scores[0]) or 1.0
    ends = np.concatenate([[scores[0] - spread], scores, [scores[-1] + spread]])
    gaps = np.diff(ends)
    errors = np.where(gaps > 0.0, missed + wrong, np.inf)  # no cut between equal scores
    least = np.flatnonzero(errors <= errors.min() * (1 + 1e-12))
    inner = least[(least > 0) & (least < scores.size)]
    cut = (inner if inner.size else least)[np.argmax(gaps[inner if inner.size else least])]
    return float(0.5 * (ends[cut] + ends[cut + 1]))
