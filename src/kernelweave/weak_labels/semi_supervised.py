"""Semi-supervised MKL: labels that are missing are learnt as candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedKFold

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank.cross import contributions
from kernelweave.estimators.answers import winners
from kernelweave.estimators.base import forget
from kernelweave.estimators.inputs import check_input
from kernelweave.estimators.parameters import check_choice, check_number
from kernelweave.estimators.progress import count_bar
from kernelweave.estimators.targets import sample_weights, signs
from kernelweave.weak_labels import Balanced, MultiStart, Outcome, learn, supervised_scores
from kernelweave.weak_labels.ambiguous import AmbiguousEstimator, point_scores
from kernelweave.weak_labels.partial_labels import (
    Counts,
    balance_counts,
    check_balance,
    may_be_balanced,
    split_labels,
)

# Folds over the labelled samples, where centring is chosen by cross-validation.
FOLDS = 3


@dataclass(eq=False, repr=False, kw_only=True)
class SemiSupervisedMKLClassifier(ClassifierMixin, AmbiguousEstimator):  # type: ignore[misc]
    r"""Multiple kernel learning from labelled and unlabelled samples (−1 marks the unlabelled ones).

    .. math:: \min_{\eta} \max_{\alpha \ge 0} 1'\alpha - \sum_i \tfrac{\alpha_i^2}{2C_i}
       - \sum_{t,m} \eta_{tm} \tfrac12 (\alpha∘y^{tm})'K_m(\alpha∘y^{tm}),
       \qquad \sum_t \|\eta_t\|_2 \le 1,\; \|\eta_t\|_2 \le \theta

    Candidate labelings y^{tm} respect the known labels and the balance; each round adds the most violated one
    per kernel.

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as in `MKLClassifier`; None is `KernelBank.distances()`. Whatever the bank's scaling,
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
        Most machines to solve per round.
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
    history_ : list of rounds with certificate and violation; n_iter_ : machines solved
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
        forget(self)
        X = check_input(self, X, reset=True)
        fitted = self._fit_bank(X)
        self.classes_, index = split_labels(y, fitted.n_samples)
        weight = sample_weights(sample_weight, None, np.zeros(1), 0 * index)
        used = np.flatnonzero(weight)
        known, prices = self._labels_and_prices(index[used], weight[used])
        check_balance(self.balance, self.classes_)
        counts = [
            balance_counts(self.balance, self.classes_, index[used], c, weight[used])
            for c in range(known.shape[1])
        ]
        with blas_threads(1):
            self.centered_ = self._choose_centring(fitted, used, known, prices, counts)
            kernels, grams = self._kernels(fitted, self.centered_)
            with count_bar(self.verbose, "rounds") as tick:
                outcomes = [
                    self._learn(_among(grams, used), column, prices, count, tick)
                    for column, count in zip(known.T, counts, strict=True)
                ]
            outcomes = [_among_all(outcome, used, index.size) for outcome in outcomes]
            values = _values(grams, outcomes)
        self._keep(fitted, kernels, outcomes, values, index, weight > 0.0, counts)
        self._warn_if_open(outcomes)
        return self

    def decision_function(self, X: Any) -> AnyArray:
        """Return one signed score per sample, or per sample and class beyond two classes."""
        self._require_fit()
        values = point_scores(self.bank_, check_input(self, X, reset=False), self.point_coef_)
        return self._shaped(values + self.intercept_)

    def _kernel_parts(self, X: Any) -> AnyArray:
        X, every = check_input(self, X, reset=False), np.arange(self.point_coef_.shape[2])
        return contributions(self.bank_, X, self.point_coef_, every)

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each sample."""
        return winners(self.decision_function(X), self.classes_)

    def _check_parameters(self) -> None:
        self._check_common()
        check_number("C_unlabeled", self.C_unlabeled, above=0.0)
        check_choice("threshold", self.threshold, ("zero", "balance"))
        if not isinstance(self.centering, bool | np.bool_) and self.centering not in ("auto", "cv"):
            raise ValueError(f"centering must be 'auto', 'cv', True or False; got {self.centering!r}.")

    def _labels_and_prices(self, index: AnyArray, weight: Vector) -> tuple[Matrix, Vector]:
        """Return ±1 per binary problem, 0 without label, and the price of every sample."""
        told = index >= 0
        if not told.any():
            raise ValueError("All labelled samples have weight 0; some of each class need a weight above 0.")
        per_class = sample_weights(weight[told], self.class_weight, self.classes_, index[told])
        prices = self.C_unlabeled * weight
        prices[told] = self.C * per_class
        columns = signs(index[told], self.classes_.size)
        known = np.zeros((index.size, columns.shape[1]))
        known[told] = columns
        return known, prices

    def _choose_centring(
        self, fitted: Any, used: Indices, known: Matrix, prices: Vector, counts: Sequence[Counts]
    ) -> bool:
        if not isinstance(self.centering, str):
            return bool(self.centering)
        told = np.flatnonzero(known[:, 0])
        rare = np.unique(known[told], axis=0, return_counts=True)[1].min()
        if self.centering == "auto" or rare < 2:
            return may_be_balanced(known, counts)
        folds = StratifiedKFold(min(FOLDS, int(rare)))
        groups = np.unique(known[told], axis=0, return_inverse=True)[1].ravel()
        right = {}
        for centre in (True, False):  # in this order: ties go to centring
            grams = _among(self._kernels(fitted, centre)[1], used)
            right[centre] = 0
            for _, held in folds.split(told, groups):
                hidden, prices_now = known.copy(), prices.copy()
                hidden[told[held]] = 0.0
                prices_now[told[held]] = self.C_unlabeled
                outcomes = [
                    self._learn(grams, column, prices_now, count.with_more(held.size), None)
                    for column, count in zip(hidden.T, counts, strict=True)
                ]
                values = _values(grams, outcomes)[told[held]]
                truth = known[told[held]]
                right[centre] += int(_agree(values, truth).sum())
        return right[True] >= right[False]

    def _learn(
        self, grams: Sequence[Matrix], known: Vector, prices: Vector, count: Counts, tick: Any
    ) -> Outcome:
        told = np.flatnonzero(known)
        scores = supervised_scores(grams, told, known[told], prices[told])
        labelings = Balanced(known, count.fewest, count.most)
        first = labelings.nearest(scores)
        return learn(
            grams,
            labelings,
            prices,
            [first] * len(grams),
            theta=self.theta,
            max_rounds=self.max_rounds if told.size < known.size else 1,
            tol=self.tol,
            max_iter=self.max_iter,
            suggestions=[scores],
            oracle=MultiStart(seed=self.random_state),
            report=None if tick is None else lambda _: tick(None),
        )

    def _keep(
        self,
        fitted: Any,
        kernels: Any,
        outcomes: Sequence[Outcome],
        values: Matrix,
        index: AnyArray,
        used: AnyArray,
        counts: Sequence[Counts],
    ) -> None:
        self._keep_outcomes(outcomes)
        self.bank_ = kernels.for_prediction()
        self.kernel_names_ = fitted.names
        free = index < 0
        self.balance_ = np.array([count.share for count in counts])
        self.intercept_ = np.zeros(len(outcomes))
        if self.threshold == "balance" and (free & used).any():
            self.intercept_ = -np.array(
                [_cut(column[free & used], count) for column, count in zip(values.T, counts, strict=True)]
            )
        learnt = winners(self._shaped(values + self.intercept_), self.classes_)
        self.transduction_ = np.where(free, learnt, self.classes_[index])


def _among(grams: Sequence[Matrix], used: Indices) -> list[Matrix]:
    """Return the kernels of the samples in use."""
    return list(grams) if used.size == len(grams[0]) else [K[np.ix_(used, used)] for K in grams]


def _among_all(outcome: Outcome, used: Indices, n: int) -> Outcome:
    """Return the outcome of some samples as one of all n: the others have no label and no coefficient."""

    def widened(values: AnyArray) -> AnyArray:
        whole = np.zeros((*values.shape[:-1], n), dtype=values.dtype)
        whole[..., used] = values
        return whole

    candidates = tuple(tuple(widened(h) for h in row) for row in outcome.candidates)
    return replace(outcome, candidates=candidates, alpha=widened(outcome.alpha), coef=widened(outcome.coef))


def _values(grams: Sequence[Matrix], outcomes: Sequence[Outcome]) -> Matrix:
    """Return the decision values of the training samples, one column per problem."""
    coefs = np.array([outcome.coef for outcome in outcomes])
    return np.asarray(sum(K @ coefs[:, m].T for m, K in enumerate(grams)))


def _agree(values: Matrix, truth: Matrix) -> AnyArray:
    if values.shape[1] == 1:
        return np.asarray((values[:, 0] > 0) == (truth[:, 0] > 0))
    return np.asarray(values.argmax(axis=1) == truth.argmax(axis=1))


def _cut(values: Vector, count: Counts) -> float:
    """Return the value between the positives and the negatives if there are to be so many of the former."""
    positives = int(np.clip(np.count_nonzero(values > 0.0), count.fewest, count.most))
    ordered = np.sort(values)[::-1]
    if positives == 0:
        return float(np.nextafter(ordered[0], np.inf))
    if positives == ordered.size:
        return float(np.nextafter(ordered[-1], -np.inf))
    return float(0.5 * (ordered[positives - 1] + ordered[positives]))
