"""Multi-instance MKL: which instances of a positive bag make it positive is learnt as candidates."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedKFold

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.estimators.base import predicted_classes, reset
from kernelweave.estimators.progress import count_bar
from kernelweave.estimators.training import warn_if_open
from kernelweave.estimators.validation import (
    Fold,
    as_bank,
    check_choice,
    check_count,
    check_input,
    check_number,
    check_share,
    encode_labels,
    is_precomputed,
    mean_held_out,
    sample_weights,
    stratified_folds,
)
from kernelweave.solvers import Result
from kernelweave.views.bags import Bags, as_bags, is_bags
from kernelweave.weak_labels.ambiguity import (
    Groups,
    KeyInstances,
    Labelings,
    consecutive_groups,
    means_matrix,
    mixed_kernel,
)
from kernelweave.weak_labels.balance import may_be_balanced
from kernelweave.weak_labels.base import WeakLabelEstimator, restricted
from kernelweave.weak_labels.cutting_plane import (
    CuttingPlaneResult,
    InputOutputCuttingPlane,
    point_values,
    supervised_scores,
)


def _softmax(values: Vector) -> float:
    return float(softmax(values) @ values)


# The value of a bag from those of its instances.
POOLS: dict[str, Callable[[Vector], float]] = {
    "max": lambda values: float(values.max()),
    "softmax": _softmax,
    "mean": lambda values: float(values.mean()),
}


@dataclass(frozen=True)
class BagProblem:
    """Bags to learn from: their label ±1, the price C of a margin violation, and kernels of the instances.

    ``members`` are the rows of each bag's instances in the kernels ``grams``.
    """

    grams: Sequence[Matrix]
    members: Groups
    signs: Vector
    C: Vector

    @property
    def n_instances(self) -> int:
        """The size of the kernels, which may hold instances of other bags as well."""
        return len(self.grams[0])

    @property
    def rows(self) -> Indices:
        """The rows of all instances of these bags."""
        return np.concatenate(self.members)

    @property
    def sizes(self) -> Indices:
        """The number of instances of each bag."""
        return np.array([bag.size for bag in self.members])

    def subset(self, bags: Indices) -> BagProblem:
        """Return the problem with some of the bags."""
        return BagProblem(self.grams, [self.members[bag] for bag in bags], self.signs[bags], self.C[bags])


@dataclass(frozen=True)
class BagFit:
    """A scoring of instances, f(x) = Σ_m Σ_j coef[m, j] k_m(x, x_j) + intercept, and how it was found."""

    coef: Matrix
    intercept: float
    result: Result = field(repr=False)
    n_rounds: int = 1
    n_iter: int = 0
    cutting_plane: CuttingPlaneResult | None = field(default=None, repr=False)

    def values(self, grams: Sequence[Matrix]) -> Vector:
        """Return the decision values of all training instances."""
        return point_values(grams, self.coef) + self.intercept


def key_instance_fits(
    plane: InputOutputCuttingPlane, problem: BagProblem, share: float | None, negatives: str
) -> Iterator[BagFit]:
    """Learn which instances of positive bags are their key instances, one or this share of each bag.

    The fits are those of the rounds; the first candidate is the whole bag. ``negatives`` says whether a
    negative bag is the mean of its instances or each of them a sample, which then share the bag's price.
    """
    problem = problem if negatives == "mean" else _with_single_negatives(problem)
    signs, C = problem.signs, problem.C
    R, points = _points(problem)
    grams = [mixed_kernel(R, K) for K in problem.grams]
    n_keys = np.where(signs > 0, min_positives(problem.sizes, share), 1)
    scores = supervised_scores(grams, means_matrix(points, R.shape[0]), signs, C)
    whole = np.ones(R.shape[0], dtype=np.int8)
    keys = KeyInstances.of_bags(signs, points, n_keys)
    for found in plane.rounds(grams, keys, C, [scores], first=whole):
        yield _bag_fit(found, np.asarray((R.T @ found.point_coef.T).T))


def instance_label_fits(
    plane: InputOutputCuttingPlane, problem: BagProblem, share: float | None
) -> Iterator[BagFit]:
    """Learn the labels of all instances, at least one or this share of each positive bag being positive.

    The fits are those of the rounds; in the first candidate every instance has the label of its bag.
    """
    rows, sizes, signs = problem.rows, problem.sizes, problem.signs
    grams = restricted(problem.grams, rows)
    labelings = Labelings.of_bags(signs, sizes, min_positives(sizes, share))
    scores = supervised_scores(grams, means_matrix(consecutive_groups(sizes), rows.size), signs, problem.C)
    bag_labels = np.repeat(signs, sizes).astype(np.int8)
    C = np.repeat(problem.C, sizes)
    for found in plane.rounds(grams, labelings, C, [scores], first=bag_labels):
        coef = np.zeros((len(grams), problem.n_instances))
        coef[:, rows] = found.point_coef
        yield _bag_fit(found, coef)


def _bag_fit(found: CuttingPlaneResult, coef: Matrix) -> BagFit:
    return BagFit(coef, 0.0, found.result, len(found.candidates), found.n_iter, found)


def _with_single_negatives(problem: BagProblem) -> BagProblem:
    """Return the problem in which every instance of a negative bag is a bag of its own."""
    positive = problem.subset(np.flatnonzero(problem.signs > 0))
    negative = problem.subset(np.flatnonzero(problem.signs < 0))
    singles = np.repeat(negative.C / negative.sizes, negative.sizes)
    return BagProblem(
        problem.grams,
        [*positive.members, *(row[None] for row in negative.rows)],
        np.concatenate([positive.signs, -np.ones(singles.size)]),
        np.concatenate([positive.C, singles]),
    )


def min_positives(sizes: Indices, share: float | None) -> Indices:
    """Return the least number of positive instances of a positive bag: one, or this share of it."""
    return np.asarray(np.maximum(1, np.ceil((share or 0.0) * sizes - 1e-9)), dtype=np.intp)


def _points(problem: BagProblem) -> tuple[sparse.csr_array, list[Indices]]:
    """Return the points of the bags as mixtures of all instances, and for each bag its points.

    A positive bag has its instances as points, a negative bag their mean.
    """
    positive, sizes = problem.signs > 0, problem.sizes
    points = consecutive_groups(np.where(positive, sizes, 1))
    # The instances in order: the point each goes into, and its share of it.
    point = np.concatenate([np.broadcast_to(p, n) for p, n in zip(points, sizes, strict=True)])
    share = np.repeat(np.where(positive, 1.0, 1.0 / sizes), sizes)
    n_points = sum(p.size for p in points)
    R = sparse.csr_array((share, (point, problem.rows)), shape=(n_points, problem.n_instances))
    return R, points


@dataclass(eq=False, repr=False, kw_only=True)
class BagClassifier(ClassifierMixin, WeakLabelEstimator):  # type: ignore[misc]
    """A classifier of bags: instances have scores, pooling makes them the bag's, a threshold cuts."""

    threshold: str = "cv"
    cv: Any = 3
    centering: Any = "auto"
    class_weight: Any = None

    def pool(self, values: Vector) -> float:
        """Return the value of a bag from those of its instances: the highest."""
        return POOLS["max"](values)

    @abstractmethod
    def _train(self, problem: BagProblem) -> BagFit:
        """Learn a scoring of the instances."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn from bags (`Bags`, or a list or object array of tables of instances) and one label per bag.

        ``sample_weight`` multiplies C by bag. From bags of weight 0 nothing is learnt but the kernels. ``groups`` are
        for the splitter ``cv``.
        """
        self._check_parameters()
        reset(self)
        bags = self._as_bags(X, reset=True)
        signs, weight, price = self._encode_labels(y, sample_weight, len(bags))
        fitted = as_bank(self.bank).fit(bags.instances)
        self.centered_ = self._choose_centring(float(weight[signs > 0].sum() / weight.sum()))
        with blas_threads(1), count_bar(self.verbose, "folds") as tick:
            kernels, grams = self._rescaled(fitted, self.centered_)
            problem = BagProblem(grams, bags.members, signs, self.C * price)
            self.threshold_ = self._choose_threshold(problem, tick, groups)
            fit = self._train(problem.subset(np.flatnonzero(price)))
            values = fit.values(grams)
        self._set_fit(fit, signs, bags.split(values))
        self._set_kernels(fitted, kernels)
        warn_if_open([fit.result], self.tol)
        return self

    def decision_function(self, X: Any) -> Vector:
        """Return one score per bag, above zero for ``classes_[1]``."""
        return np.array([self.pool(values) for values in self.instance_decision_function(X)])

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each bag."""
        return predicted_classes(self.decision_function(X), self.classes_)

    def instance_decision_function(self, X: Any) -> list[Vector]:
        """Return the scores of the instances, one array per bag."""
        self._require_fit()
        bags = self._as_bags(X, reset=False)
        values = self._point_contributions(bags.instances)[:, 0].sum(axis=1) + self.intercept_[0]
        return bags.split(values)

    def predict_instances(self, X: Any) -> list[AnyArray]:
        """Return the class of each instance, one array per bag."""
        return [predicted_classes(values, self.classes_) for values in self.instance_decision_function(X)]

    def combined_kernel(self, X: Any, Z: Any = None) -> Matrix:
        """Return the learnt kernel between the instances of bags X and Z (None: the training ones)."""
        X = as_bags(X).instances
        return super().combined_kernel(X, None if Z is None else as_bags(Z).instances)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("threshold", self.threshold, ("cv", "zero"))
        if isinstance(self.cv, Integral) and not isinstance(self.cv, bool):
            check_count("cv", self.cv, least=2)
        elif isinstance(self.cv, str) or not (hasattr(self.cv, "split") or isinstance(self.cv, Iterable)):
            raise ValueError(
                f"cv must be a number of folds from 2 on, a splitter or pairs of indices; got {self.cv!r}."
            )
        if not isinstance(self.centering, bool | np.bool_) and self.centering != "auto":
            raise ValueError(f"centering must be 'auto', True or False; got {self.centering!r}.")

    def _as_bags(self, X: Any, *, reset: bool) -> Bags:
        if is_precomputed(self.bank):
            raise ValueError(
                "Bags hold instances, not kernel values: bank='precomputed' does not work; use a KernelBank."
            )
        if is_bags(X):
            bags = as_bags(X)[:]
            bags.instances = check_input(self, bags.instances, reset=reset)
            return bags
        return as_bags(check_input(self, X, reset=reset))  # a table: every sample is a bag of its own

    def _encode_labels(self, y: Any, sample_weight: Any, n: int) -> tuple[Vector, Vector, Vector]:
        """Set the classes; return ±1 per bag, its weight, and that times the weight of its class."""
        self.classes_, index = encode_labels(y, n)
        if self.classes_.size != 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: bags have 2 "
                f"classes, got {self.classes_.size}; use scikit-learn's OneVsRestClassifier for more."
            )
        weight = sample_weights(sample_weight, None, self.classes_, index)
        price = sample_weights(weight, self.class_weight, self.classes_, index)
        return np.where(index == 1, 1.0, -1.0), weight, price

    def _choose_centring(self, share: float) -> bool:
        return may_be_balanced(share, share) if self.centering == "auto" else bool(self.centering)

    def _choose_threshold(self, problem: BagProblem, tick: Callable[[int], None], groups: Any) -> float:
        """Return the cut with fewest errors on scores of bags that were held out of training."""
        if self.threshold == "zero":
            return 0.0
        signs, used = problem.signs, np.flatnonzero(problem.C)
        if np.bincount(signs[used] > 0).min() < 2:
            warnings.warn(
                "threshold='cv' holds out bags of either class, but one class has a single bag: scores are "
                "cut at zero, as with threshold='zero'.",
                stacklevel=3,
            )
            return 0.0
        held_out = []
        folds = self._folds(signs, used, groups)
        for train, test in folds:
            values = self._train(problem.subset(train)).values(problem.grams)
            held_out.append(np.array([self.pool(values[problem.members[bag]]) for bag in test]))
            tick(len(folds) + 1)
        scores = mean_held_out(folds, held_out)
        return best_cut(scores[used], signs[used], problem.C[used])

    def _folds(self, signs: Vector, used: Indices, groups: Any) -> list[Fold]:
        """Return folds of the bags in use; each of them is held out equally often."""
        index = (signs > 0).astype(np.intp)
        if isinstance(self.cv, Integral):
            most = min(int(self.cv), int(np.bincount(index[used]).min()))
            splitter = StratifiedKFold(most, shuffle=True, random_state=self.random_state)
            return [(used[train], used[test]) for train, test in stratified_folds(splitter, index[used])]
        folds = stratified_folds(self.cv, index, groups)  # indices are those of all bags
        return [(np.intersect1d(train, used), np.intersect1d(test, used)) for train, test in folds]

    def _set_fit(self, fit: BagFit, signs: Vector, values: list[Vector]) -> None:  # noqa: ARG002
        """Set what was learnt; ``values`` are those of the training instances, by bag."""
        self.certificate_ = replace(fit.result.certificate, tol=self.tol)
        self.duality_gap_, self.objective_ = self.certificate_.relative_gap, self.certificate_.upper
        self.n_iter_ = fit.n_iter
        self.point_coef_ = fit.coef[None]
        self.intercept_ = np.array([fit.intercept - self.threshold_])


@dataclass(eq=False, repr=False, kw_only=True)
class MultiInstanceMKLClassifier(BagClassifier):
    r"""Multiple kernel learning from bags of instances with one label per bag.

    A positive bag has at least one positive instance. Which ones is ambiguous: candidates are selections of
    key instances (``ambiguity="input"``), or labelings of all instances (``"output"``), and each becomes a
    base kernel with a weight.

    .. math:: K^{tm}_{ij} = y_i y_j \frac{1}{|δ^{tm}_i||δ^{tm}_j|}
       \sum_{a \in δ^{tm}_i, b \in δ^{tm}_j} k_m(x_{ia}, x_{jb})

    Parameters
    ----------
    bank : KernelBank or None, default=None
        Kernels of the instances; None is `KernelBank.default()`. Whatever the bank's scaling, each is
        scaled to mean diagonal one on the training instances, after centring where they are centred.
    ambiguity : {"input", "output"}, default="input"
        Key instances per bag, or labels per instance.
    C : float, default=10.0
        Price of a squared margin violation of a bag, or of an instance.
    theta : float or None, default=1.2
        The cap on a candidate's weight is theta / T with T candidates; None is the hard margin.
    positive_share : float or None, default=None
        Least share of positive instances in a positive bag ("output"), or the share of a bag that are its key
        instances ("input"), above 0 and at most 1; None is one instance.
    threshold : {"cv", "zero"}, default="cv"
        Where bag scores are cut: by cross-validation inside the training bags, or at zero.
    cv : int, splitter or pairs of indices, default=3
        Folds for the threshold, which hold all bags out equally often; a number of them is stratified and shuffled.
        ``fit(X, y, groups=...)`` for splitters that need groups.
    centering : "auto" or bool, default="auto"
        Whether kernels are centred; "auto": where bag labels are balanced.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class of bags.
    max_rounds : int, default=7
        Most candidates per kernel.
    tol, max_iter : as in `SemiSupervisedMKLClassifier`
    memory_limit : float or None, default=None
        Most bytes for the kernels of the instances; None is 80 % of what is free.
    random_state : int, default=0
        Seed of the folds and of the search for candidates.
    verbose : int, default=0
        1 shows a bar.

    Attributes
    ----------
    key_instances_ : for each training bag the place in it of its highest instance; −1 for negative bags
    candidates_, candidate_weights_, kernel_weights_ : as in `SemiSupervisedMKLClassifier`
    threshold_ : the cut of bag scores, which is part of ``intercept_``
    certificate_, duality_gap_, objective_, stopped_, history_, n_iter_ : of the final fit
    classes_, kernel_names_, centered_, n_features_in_ : as elsewhere

    Notes
    -----
    [Xu14, Examples 1 and 2, Sec. 4.5.3]. A positive bag is its key instance, a negative bag the mean of its
    instances; a bag's score is its highest instance's, as in the key-instance SVM that the thesis extends.
    The first candidate is the whole bag: with ``max_rounds=1`` this is the set kernel.
    Symbols: δ → ``candidates_``.
    Differs from the paper: means over key instances; the threshold, C, the first candidate and the bag rule
    are not stated there.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MultiInstanceMKLClassifier
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(size=(4, 2)) for _ in range(20)]
    >>> y = np.arange(20) % 2
    >>> for bag in bags[1::2]:
    ...     bag[2] += 5.0  # one instance makes a bag positive
    >>> model = MultiInstanceMKLClassifier().fit(bags, y)
    >>> model.key_instances_[:4]
    array([-1,  2, -1,  2])

    """

    ambiguity: str = "input"
    C: float = 10.0
    theta: float | None = 1.2
    positive_share: float | None = None
    negatives: str = "mean"
    pooling: str = "max"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("ambiguity", self.ambiguity, ("input", "output"))
        check_number("theta", self.theta, above=0.0, optional=True)
        check_share("positive_share", self.positive_share, positive=True, optional=True)

        check_choice("negatives", self.negatives, ("mean", "instances"))
        check_choice("pooling", self.pooling, tuple(POOLS))

    def pool(self, values: Vector) -> float:
        """Return the value of a bag from those of its instances, as ``pooling`` says."""
        return POOLS[self.pooling](values)

    def _train(self, problem: BagProblem) -> BagFit:
        *_, last = self._fits(problem)
        return last

    def _fits(self, problem: BagProblem) -> Iterator[BagFit]:
        """Yield what each round has learnt."""
        plane = self._cutting_plane(self.theta)
        if self.ambiguity == "input":
            return key_instance_fits(plane, problem, self.positive_share, self.negatives)
        return instance_label_fits(plane, problem, self.positive_share)

    def _set_fit(self, fit: BagFit, signs: Vector, values: list[Vector]) -> None:
        assert fit.cutting_plane is not None
        self._set_candidates([fit.cutting_plane])
        super()._set_fit(fit, signs, values)
        highest = np.array([bag_values.argmax() for bag_values in values])
        self.key_instances_ = np.where(signs > 0, highest, -1)


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
