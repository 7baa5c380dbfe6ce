"""Maximum-margin clustering with multiple kernels: all labels are candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.base import ClusterMixin

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.estimators.base import reset
from kernelweave.estimators.progress import count_bar
from kernelweave.estimators.training import warn_if_open
from kernelweave.estimators.validation import as_bank, check_input, check_number
from kernelweave.weak_labels.ambiguity import Labelings
from kernelweave.weak_labels.balance import PositiveCounts, as_interval
from kernelweave.weak_labels.base import WeakLabelEstimator
from kernelweave.weak_labels.cutting_plane import point_values


@dataclass(eq=False, repr=False, kw_only=True)
class MKLClusterer(ClusterMixin, WeakLabelEstimator):  # type: ignore[misc]
    r"""Two clusters with the largest margin over many kernels.

    The problem of `SemiSupervisedMKLClassifier` without any label: only the balance keeps all samples from
    falling on one side.

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels; None is `KernelBank.default()`. They are centred, then scaled to mean diagonal one.
    balance : float or pair of floats, default=(0.3, 0.7)
        Share of the samples in cluster 1, or an interval for it; each cluster has one sample at least.
    C : float, default=0.1
        Price of a squared margin violation.
    theta : float or None, default=None
        The cap on a candidate's weight is theta / T with T candidates; None is the hard margin.
    max_rounds : int, default=7
        Most candidates per kernel.
    tol, max_iter, memory_limit, random_state, verbose : as in `SemiSupervisedMKLClassifier`

    Attributes
    ----------
    labels_ : array (n,) of 0 and 1
    candidates_, candidate_weights_, kernel_weights_ : as in `SemiSupervisedMKLClassifier`
    certificate_, duality_gap_, objective_, stopped_, history_, n_iter_ : likewise

    Notes
    -----
    [Xu14, Ch. 4] with no label known. Where the balance allows both, which of the clusters is 0 means
    nothing: the first sample's is; otherwise the balance decides which is 1.
    Differs from the paper: it names clustering as a case of the framework and reports no experiment.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from kernelweave import MKLClusterer
    >>> X, truth = make_blobs(40, centers=[[-3, 0], [3, 0]], random_state=0)
    >>> labels = MKLClusterer().fit(X).labels_
    >>> bool((labels == (truth != truth[0])).all())
    True

    """

    balance: Any = (0.3, 0.7)
    C: float = 0.1
    theta: float | None = None

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn passes labels to everyone
        """Divide the samples X into two clusters."""
        self._check_parameters()
        reset(self)
        X = check_input(self, X, reset=True)
        fitted = as_bank(self.bank).fit(X)
        labelings = self._labelings(fitted.n_samples)
        C = np.full(fitted.n_samples, float(self.C))
        with blas_threads(1), count_bar(self.verbose, "rounds") as tick:
            kernels, grams = self._rescaled(fitted, centre=True)
            plane = self._cutting_plane(self.theta)
            result = plane.solve(
                grams, labelings, C, principal_scores(grams), report=lambda _: tick(self.max_rounds)
            )
            values = point_values(grams, result.point_coef)
        self._set_candidates([result])
        self._set_clusters(values, labelings)
        self._set_kernels(fitted, kernels)
        warn_if_open([result.result], self.tol)
        return self

    def predict(self, X: Any) -> AnyArray:
        """Return the cluster of new samples."""
        self._require_fit()
        values = self._point_contributions(check_input(self, X, reset=False))[:, 0].sum(axis=1)
        return np.asarray((values > self.threshold_).astype(int) ^ int(self._flip))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("theta", self.theta, above=0.0, optional=True)

    def _labelings(self, n: int) -> Labelings:
        """Return the divisions of n samples that keep the balance and leave no cluster empty."""
        if n < 2:
            raise ValueError(f"Clustering needs at least 2 samples, got {n} sample.")
        counts = PositiveCounts.from_shares(*as_interval(self.balance), n)
        least, most = np.clip([counts.min_positives, counts.max_positives], 1, n - 1).tolist()
        return Labelings.balanced(np.zeros(n), least, most)

    def _set_clusters(self, values: Vector, labelings: Labelings) -> None:
        """Divide the samples by their decision values, as far as the balance allows."""
        found = labelings.from_scores(values)
        positive = found > 0
        # The first sample is in cluster 0 unless that breaks the balance.
        self._flip = bool(positive[0]) and labelings.contains(-found)
        self.labels_ = positive.astype(int) ^ int(self._flip)
        self.threshold_ = float(0.5 * (values[~positive].max() + values[positive].min()))


def principal_scores(grams: Sequence[Matrix], n_directions: int = 3) -> list[Vector]:
    """Return the first principal directions of the samples in the average kernel, the largest first."""
    average = sum(grams[1:], start=grams[0].copy()) / len(grams)
    n = len(average)
    _, vectors = eigh(average, subset_by_index=[max(0, n - n_directions), n - 1])
    return [np.ascontiguousarray(v) for v in vectors.T[::-1]]
