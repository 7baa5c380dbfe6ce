"""Semi-supervised MKL: labels that are missing are learnt as candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedKFold

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank.protocol import FittedKernels
from kernelweave.estimators.base import predicted_classes, reset
from kernelweave.estimators.progress import count_bar
from kernelweave.estimators.training import warn_if_open
from kernelweave.estimators.validation import (
    as_bank,
    check_choice,
    check_input,
    check_number,
    label_column,
    require_classes,
    require_one_type,
    require_same_rows,
    sample_weights,
    signs,
)
from kernelweave.weak_labels.ambiguity import Labelings, selection_matrix
from kernelweave.weak_labels.balance import PositiveCounts, may_be_balanced, positive_counts
from kernelweave.weak_labels.base import WeakLabelEstimator, restricted
from kernelweave.weak_labels.cutting_plane import (
    CuttingPlaneResult,
    CuttingPlaneRound,
    point_values,
    supervised_scores,
)

UNLABELLED = -1


@dataclass(frozen=True)
class PartialLabels:
    """Labels of which some are missing, as binary problems.

    ``index`` is the class of each sample, −1 without label; ``known`` its label ±1 in each problem, 0 without
    label; ``C`` the price of its margin violations; ``counts`` bounds, for each problem, the number of
    positives among the samples without label.
    """

    index: AnyArray
    known: Matrix
    C: Vector
    counts: list[PositiveCounts]

    def hide(self, held: Indices, C_unlabeled: float) -> PartialLabels:
        """Return the problems in which these samples have no label either."""
        index, known, C = self.index.copy(), self.known.copy(), self.C.copy()
        index[held], known[held], C[held] = UNLABELLED, 0.0, C_unlabeled
        return PartialLabels(index, known, C, [count.with_more(held.size) for count in self.counts])

    def may_be_balanced(self) -> bool:
        """Return whether the classes may be of similar size, as far as the balance is known.

        With few labels it hardly is: three of ten positive do not exclude even classes, two of ten do.
        """
        n = sum(count.n for count in self.counts)
        if n == 0:
            share = float((self.known > 0).mean())
            return may_be_balanced(share, share)
        low = sum(count.min_positives for count in self.counts) / n
        high = sum(count.max_positives for count in self.counts) / n
        return may_be_balanced(low, high)


@dataclass(eq=False, repr=False, kw_only=True)
class SemiSupervisedMKLClassifier(ClassifierMixin, WeakLabelEstimator):  # type: ignore[misc]
    r"""Multiple kernel learning from labelled and unlabelled samples (−1 marks the unlabelled ones).

    .. math:: \min_{\eta} \max_{\alpha \ge 0} 1'\alpha - \sum_i \tfrac{\alpha_i^2}{2C_i}
       - \sum_{t,m} \eta_{tm} \tfrac12 (\alpha∘y^{tm})'K_m(\alpha∘y^{tm}),
       \qquad \sum_t \|\eta_t\|_2 \le 1,\; \|\eta_t\|_2 \le \theta

    Candidate labelings y^{tm} respect the known labels and the balance; each round adds the most violated one
    per kernel.

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as in `MKLClassifier`; None is `KernelBank.default()`. Whatever the bank's scaling,
        each is scaled to mean diagonal one on the training samples, after centring where they are centred.
    C, C_unlabeled : float, default=100.0 and 0.1
        Prices of a squared margin violation of labelled and of unlabelled samples.
    theta : float or None, default=1.2
        The cap on a candidate's weight is theta / T with T candidates: from 1 (all count alike) up; None is
        the hard margin, no cap.
    balance : "auto", float, pair of floats or mapping, default="auto"
        Share of positives (of ``classes_[1]``) among the unlabelled, or an interval for it; "auto" takes the
        labelled samples' share within one standard error. Beyond two classes a mapping from class to share;
        shares of all classes sum to one.
    centering : "auto", "cv" or bool, default="auto"
        Whether kernels are centred in feature space, in place of a bias. "auto": where the classes
        may be balanced; "cv": by cross-validation over the labelled samples.
    threshold : {"zero", "balance"}, default="zero"
        Where decision values are cut: at zero, or so that the share of positives in training is the balance.
    class_weight : dict, "balanced" or None, default=None
        Factor on C per class, for labelled samples.
    max_rounds : int, default=7
        Most candidates per kernel.
    tol : float, default=1e-3
        Relative duality gap of every round's convex problem.
    max_iter : int or None, default=None
        Most iterations of the solver per round; each solves one SVM.
    memory_limit : float or None, default=None
        Most bytes for the kernels; M + 2 matrices are held. None is 80 % of what is free.
    random_state : int, default=0
        Seed of the random starts in the search for candidates.
    verbose : int, default=0
        1 shows a bar with the rounds.

    Attributes
    ----------
    transduction_ : labels of all training samples: those given, and those learnt for the unlabelled
    candidates_ : int8 array (T, M, n) of labelings, ±1 for ``classes_[1]``, 0 for samples of weight 0; beyond
        two classes a list of them
    candidate_weights_ : array (T, M), the weights η
    kernel_weights_ : array (M,) or (classes, M), the weights summed over the candidates
    dual_coef_, support_, intercept_ : α of the samples, where it is not zero, and minus the threshold
    certificate_, certificates_, duality_gap_, objective_ : bounds of the last round's convex problem
    stopped_ : "no violated candidate", "repeated candidate", "round cap" or "interrupted"
    history_ : list of rounds with certificate and violation; n_iter_ : SVMs solved
    centered_, balance_ : what was used; classes_, kernel_names_, n_features_in_ : as elsewhere

    Notes
    -----
    IOKL of [Xu14, Eq. (4.2), (4.9), Algorithm 3], hard margin for ``theta=None``. The certificate is that of
    the convex problem over the candidates found: the search for candidates is a heuristic, so no bound for
    all labelings follows. Symbols: d_{m,t} → ``candidate_weights_[t, m]``, T → rounds.
    Differs from the paper: C form; centring instead of "+1 for the bias"; kernels of mean diagonal one, so
    that C means the same for each; mirrored many-start search; second-order steps; the balance is estimated
    unless given, where the thesis used the true one.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from kernelweave import SemiSupervisedMKLClassifier
    >>> X, truth = make_blobs(60, centers=[[-2, 0], [2, 0]], random_state=0)
    >>> y = np.full(60, -1)
    >>> y[:6] = truth[:6]
    >>> model = SemiSupervisedMKLClassifier().fit(X, y)
    >>> float((model.transduction_ == truth).mean()) > 0.9
    True

    """

    C: float = 100.0
    C_unlabeled: float = 0.1
    theta: float | None = 1.2
    balance: Any = "auto"
    centering: Any = "auto"
    threshold: str = "zero"
    class_weight: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from samples X and their labels y, −1 where there is none.

        ``sample_weight`` multiplies C and C_unlabeled. Samples of weight 0 are labelled, but nothing is
        learnt from them: kernels alone are made, centred and scaled on all samples.
        """
        self._check_parameters()
        reset(self)
        require_same_rows(X, y)
        X = check_input(self, X, reset=True)
        fitted = as_bank(self.bank).fit(X)
        self.classes_, index = split_labels(y, fitted.n_samples)
        weight = sample_weights(sample_weight, None, np.zeros(1), 0 * index)
        used = np.flatnonzero(weight)
        labels = self._partial_labels(index[used], weight[used])
        with blas_threads(1):
            self.centered_ = self._choose_centring(fitted, used, labels)
            kernels, grams = self._rescaled(fitted, self.centered_)
            with count_bar(self.verbose, "rounds") as tick:
                total = self.max_rounds * len(labels.counts)
                results = self._learn(restricted(grams, used), labels, report=lambda _: tick(total))
            results = [_on_all_samples(result, used, index.size) for result in results]
            values = _decision_values(grams, results)
        self._set_candidates(results)
        self._set_transduction(values, index, weight > 0.0, labels.counts)
        self._set_kernels(fitted, kernels)
        warn_if_open([result.result for result in results], self.tol)
        return self

    def decision_function(self, X: Any) -> AnyArray:
        """Return one signed score per sample, or per sample and class beyond two classes."""
        self._require_fit()
        return self._shaped(self._kernel_parts(X).sum(axis=2) + self.intercept_)

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each sample."""
        return predicted_classes(self.decision_function(X), self.classes_)

    def _kernel_parts(self, X: Any) -> AnyArray:
        return self._point_contributions(check_input(self, X, reset=False))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("theta", self.theta, above=0.0, optional=True)
        check_number("C_unlabeled", self.C_unlabeled, above=0.0)
        check_choice("threshold", self.threshold, ("zero", "balance"))
        if not isinstance(self.centering, bool | np.bool_) and self.centering not in ("auto", "cv"):
            raise ValueError(f"centering must be 'auto', 'cv', True or False; got {self.centering!r}.")

    def _partial_labels(self, index: AnyArray, weight: Vector) -> PartialLabels:
        """Return the binary problems, with a price and a bound on the positives for what has no label."""
        labelled = index >= 0
        if not labelled.any():
            raise ValueError("All labelled samples have weight 0; some of each class need a weight above 0.")
        C = self.C_unlabeled * weight
        C[labelled] = self.C * sample_weights(
            weight[labelled], self.class_weight, self.classes_, index[labelled]
        )
        columns = signs(index[labelled], self.classes_.size)
        known = np.zeros((index.size, columns.shape[1]))
        known[labelled] = columns
        return PartialLabels(index, known, C, positive_counts(self.balance, self.classes_, index, weight))

    def _choose_centring(self, fitted: FittedKernels, used: Indices, labels: PartialLabels) -> bool:
        """Return whether to centre the kernels: as asked, by the balance, or by cross-validation."""
        if not isinstance(self.centering, str):
            return bool(self.centering)
        labelled = np.flatnonzero(labels.index >= 0)
        classes = labels.index[labelled]
        n_folds = min(3, int(np.bincount(classes).min()))
        if self.centering == "auto" or n_folds < 2:
            return labels.may_be_balanced()
        hits = {True: 0, False: 0}  # held-out samples predicted right
        for centre in hits:
            grams = restricted(self._rescaled(fitted, centre)[1], used)
            for _, test in StratifiedKFold(n_folds).split(labelled, classes):
                held = labelled[test]
                results = self._learn(grams, labels.hide(held, self.C_unlabeled))
                values = self._shaped(_decision_values(grams, results)[held])
                hits[centre] += int(
                    (predicted_classes(values, self.classes_) == self.classes_[classes[test]]).sum()
                )
        return hits[True] >= hits[False]  # ties go to centring

    def _learn(
        self,
        grams: Sequence[Matrix],
        labels: PartialLabels,
        report: Callable[[CuttingPlaneRound], None] | None = None,
    ) -> list[CuttingPlaneResult]:
        """Run a cutting plane for each binary problem, from the scores of an SVM on the labelled samples."""
        labelled = np.flatnonzero(labels.index >= 0)
        A, C = selection_matrix(labelled, labels.index.size), labels.C[labelled]
        results = []
        for known, counts in zip(labels.known.T, labels.counts, strict=True):
            labelings = Labelings.balanced(known, counts.min_positives, counts.max_positives)
            scores = supervised_scores(grams, A, known[labelled], C)
            plane = self._cutting_plane(self.theta)
            results.append(plane.solve(grams, labelings, labels.C, [scores], report))
        return results

    def _set_transduction(
        self, values: Matrix, index: AnyArray, used: AnyArray, counts: Sequence[PositiveCounts]
    ) -> None:
        """Set the threshold, and the labels that the decision values of the training samples lead to."""
        unlabelled = index < 0
        self.balance_ = np.array([count.share for count in counts])
        self.intercept_ = np.zeros(len(counts))
        if self.threshold == "balance" and (unlabelled & used).any():
            columns = values[unlabelled & used].T
            cuts = [balance_threshold(column, count) for column, count in zip(columns, counts, strict=True)]
            self.intercept_ = -np.array(cuts)
        learnt = predicted_classes(self._shaped(values + self.intercept_), self.classes_)
        self.transduction_ = np.where(unlabelled, learnt, self.classes_[index])


def split_labels(y: Any, n_samples: int) -> tuple[AnyArray, AnyArray]:
    """Return the classes and, per sample, the index of its class, −1 where it has no label."""
    y = label_column(y, one_type=False)  # -1 may stand among words
    if y.shape[0] != n_samples:
        raise ValueError(f"X has {n_samples} samples but y has {y.shape[0]} labels; they must agree.")
    missing = is_unlabelled(y)
    if missing.all():
        raise ValueError(
            "All samples are unlabelled (-1), but the classifier needs some labels of at least 2 classes; "
            "MKLClusterer groups samples without any."
        )
    labels = y[~missing]
    if labels.dtype == object and all(isinstance(label, str) for label in labels):
        labels = labels.astype(str)
    require_one_type(labels)
    require_classes(labels)
    classes, index_of_labelled = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            f"The classifier needs labelled samples of at least 2 classes, but y has 1 class only: "
            f"{classes.tolist()}; -1 marks unlabelled samples and is not a class, use 0 and 1."
        )
    index = np.full(y.shape[0], UNLABELLED)
    index[~missing] = index_of_labelled
    return classes, index


def is_unlabelled(y: AnyArray) -> AnyArray:
    """Return where there is no label: the number −1, also among words, where numpy may have made it '-1'."""
    if y.dtype.kind in "OUS":
        return np.array([label == UNLABELLED or label == str(UNLABELLED) for label in y.tolist()], dtype=bool)
    return np.asarray(y == UNLABELLED)


def balance_threshold(values: Vector, counts: PositiveCounts) -> float:
    """Return the threshold halfway between positives and negatives when their number has to keep the balance.

    The number of positives is that of values above zero, or the nearest one within its bounds.
    """
    n_positives = counts.clip(int(np.count_nonzero(values > 0.0)))
    ordered = np.sort(values)[::-1]
    if n_positives == 0:
        return float(np.nextafter(ordered[0], np.inf))
    if n_positives == ordered.size:
        return float(np.nextafter(ordered[-1], -np.inf))
    return float(0.5 * (ordered[n_positives - 1] + ordered[n_positives]))


def _decision_values(grams: Sequence[Matrix], results: Sequence[CuttingPlaneResult]) -> Matrix:
    """Return the decision values of the training samples, one column per problem."""
    return np.column_stack([point_values(grams, result.point_coef) for result in results])


def _on_all_samples(result: CuttingPlaneResult, used: Indices, n: int) -> CuttingPlaneResult:
    """Return the result for some samples as one for all n: the others have no label and no coefficient."""

    def padded(values: AnyArray) -> AnyArray:
        zeros = np.zeros((*values.shape[:-1], n), dtype=values.dtype)
        zeros[..., used] = values
        return zeros

    return replace(
        result,
        candidates=tuple(tuple(padded(h) for h in group) for group in result.candidates),
        alpha=padded(result.alpha),
        point_coef=padded(result.point_coef),
    )
