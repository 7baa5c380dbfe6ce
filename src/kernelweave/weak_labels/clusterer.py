"""Maximum-margin clustering with multiple kernels: all labels are candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Vector
from kernelweave.estimators.base import forget
from kernelweave.estimators.inputs import check_input
from kernelweave.estimators.progress import count_bar
from kernelweave.weak_labels import Balanced, MultiStart, learn
from kernelweave.weak_labels.ambiguous import AmbiguousEstimator, point_scores
from kernelweave.weak_labels.partial_labels import share_counts
from kernelweave.weak_labels.spectral import leading_scores


@dataclass(eq=False, repr=False, kw_only=True)
class MKLClusterer(ClusterMixin, AmbiguousEstimator):  # type: ignore[misc]
    r"""Two clusters with the largest margin over many kernels.

    The problem of `SemiSupervisedMKLClassifier` without any label: only the balance keeps all samples from
    falling on one side.

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels; None is `KernelBank.distances()`. They are centred, then scaled to mean diagonal one.
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
    nothing: the first sample's is; otherwise the balance tells which is 1.
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
        self._check_common()
        forget(self)
        X = check_input(self, X, reset=True)
        fitted = self._fit_bank(X)
        n = fitted.n_samples
        if n < 2:
            raise ValueError(f"Clustering needs at least 2 samples, got {n} sample.")
        counts = share_counts("balance", self.balance, n)
        fewest, most = np.clip([counts.fewest, counts.most], 1, n - 1).tolist()
        labelings = Balanced(np.zeros(n), fewest, most)
        with blas_threads(1), count_bar(self.verbose, "rounds") as tick:
            kernels, grams = self._kernels(fitted, True)
            starts = leading_scores(grams)
            outcome = learn(
                grams,
                labelings,
                np.full(n, float(self.C)),
                [labelings.nearest(starts[0])] * len(grams),
                theta=self.theta,
                max_rounds=self.max_rounds,
                tol=self.tol,
                max_iter=self.max_iter,
                suggestions=starts,
                oracle=MultiStart(seed=self.random_state),
                report=lambda _: tick(self.max_rounds),
            )
            values = np.sum([K @ c for K, c in zip(grams, outcome.coef, strict=True)], axis=0)
        self._keep_outcomes([outcome])
        # Within the balance the decision values say who belongs together; the first sample is in cluster 0
        # unless that breaks the balance.
        found = labelings.nearest(values)
        labels = (found > 0).astype(int)
        self._flip = bool(labels[0]) and labelings.contains(-found)
        self.labels_ = labels ^ int(self._flip)
        self.threshold_ = _between(values, labels)
        self.bank_ = kernels.for_prediction()
        self.kernel_names_ = fitted.names
        self._warn_if_open([outcome])
        return self

    def predict(self, X: Any) -> AnyArray:
        """Return the cluster of new samples."""
        self._require_fit()
        X = check_input(self, X, reset=False)
        values = point_scores(self.bank_, X, self.point_coef_)[:, 0]
        return (values > self.threshold_).astype(int) ^ int(self._flip)


def _between(values: Vector, labels: AnyArray) -> float:
    """Return the value halfway between the two clusters."""
    return float(0.5 * (values[labels == 0].max() + values[labels == 1].min()))
