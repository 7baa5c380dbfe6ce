"""Regression with kernel weights and noise by restricted maximum likelihood, and intervals for new samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
from scipy.stats import t as student
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_array, check_random_state

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank import KernelBank, Landmarks
from kernelweave.bank.cross import contributions, in_slices
from kernelweave.bank.features import Features
from kernelweave.bank.protocol import FittedKernels, n_rows
from kernelweave.estimators.base import reset
from kernelweave.estimators.column_notes import note_columns
from kernelweave.estimators.feature_model import N_SAMPLE, approximation_error
from kernelweave.estimators.on_features import OnFeatures
from kernelweave.estimators.sample_blocks import TableBlocks
from kernelweave.estimators.validation import (
    as_bank,
    check_count,
    check_input,
    check_number,
    check_part,
    checked_weights,
    is_precomputed,
    real_targets,
    require_same_rows,
)
from kernelweave.evidence.components import Components, centred_components
from kernelweave.evidence.feature_components import feature_components, sums_over_block
from kernelweave.evidence.newton import EvidenceNewton
from kernelweave.evidence.pooled import PooledEvidence
from kernelweave.evidence.posterior import learn
from kernelweave.gram import Storage
from kernelweave.gram.memory import FLOAT64_BYTES, require_room

# From so many targets on a prior over weights is better learnt from the targets than given.
POOLED_FROM = 5
# Below so many targets products with kernels are made without holding the kernels.
FEW_TARGETS = 100
# The features of all kernels together, unless landmarks are named, and the coordinates that are made of them.
MOST_FEATURES, MOST_COORDINATES = 4000, 1500
# Values of new rows that are held at a time, of all kernels together.
VALUES_PER_SLICE = 32_000_000


class EvidenceMKLRegressor(RegressorMixin, MultiOutputMixin, OnFeatures):  # type: ignore[misc]
    r"""Regression with kernel weights and noise by evidence: restricted maximum likelihood, for every target.

    .. math:: y_t \sim N\bigl(b_t 1,\; \sum_m \eta_{tm} K_m + \sigma_t^2 I\bigr), \qquad
       \max_{\eta_t, \sigma_t \ge 0} \; \log p(y_t)

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels, as for `MKLRegressor`. They are centred and brought to one size here.
    pooled : bool or None, default=None
        Whether the targets (columns of y) share a prior over their weights, which is learnt from all of them; else
        each is fitted by itself. None: from five targets on.
    spread : float, default=2.0
        Of a target by itself: standard deviation of the log-normal prior on the ratios of its weights. Small values
        hold the weights together, infinity leaves them to the likelihood alone.
    features : Landmarks, RandomFourier or None, default=None
        Explicit features in place of the kernels. None: landmarks beyond ``exact_up_to`` samples.
    exact_up_to : int, default=3000
        Up to so many samples the kernels themselves are used; time grows with the cube of the samples.
    tol : float, default=0.01
        Search of one target: a step that is expected to raise the log likelihood by less is not taken.
    max_iter : int, default=50
        Most steps of that search.
    memory_limit, n_jobs, random_state : as for `MKLRegressor`

    Attributes
    ----------
    kernel_weights_ : array of shape (M,), or (targets, M) where y has columns
        Variances η of the kernels as the bank has them, in squared units of y; means where targets are pooled.
    noise_variance_ : float, or array of shape (targets,)
        σ² of a sample of weight one.
    explained_variance_ratio_ : array of shape (M,), or (targets, M)
        Share of each kernel in the variance of y; what is left to one is noise.
    log_evidence_ : float, or array of shape (targets,)
        Logarithm of the restricted likelihood at the maximum, or of its mean under the shared prior.
    gradient_norm_ : float, array of shape (targets,) or None
        Largest derivative of the log likelihood, with its prior, by the logarithm of a weight where the search
        ended; None where targets are pooled.
    prior_gap_ : float or None
        Of pooled targets: no other prior over the points raises the mean log likelihood of a target by more; the
        prior itself, which counts as one target spread evenly over the points, is part of that mean.
    dual_coef_ : array of shape (targets, M, n_train), the coefficients of every kernel; without features
    intercept_ : array of shape (targets,)
    posterior_, coordinates_, centred_targets_ : what the spread of predictions is made of
    kernel_names_, storage_, n_iter_, n_features_in_, feature_names_in_ : as for `MKLClassifier`

    Notes
    -----
    The square loss with a penalty per kernel is a Gaussian process; its evidence says how much each kernel and the
    noise count, where held-out loss would search a grid. The likelihood is not convex: there is no certificate of a
    global maximum. ``gradient_norm_`` says how nearly the search is stationary, ``prior_gap_`` is a bound, since
    the shared prior is a concave problem. Sample weights divide the noise: sample i has variance σ²/w_i.
    Differs from the paper: [Patterson71] for the likelihood, [Gilmour95] for the average information, [Haseman72]
    for the start; the prior on ratios, and that targets share one over points, are ours.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave import EvidenceMKLRegressor, KernelBank
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bank = KernelBank.per_view(views={"body": [0, 1, 2, 3], "blood": slice(4, 10)})
    >>> model = EvidenceMKLRegressor(bank).fit(X[:300], y[:300])
    >>> model.kernel_weights_.shape
    (2,)
    >>> mean, std = model.predict(X[300:], return_std=True)
    >>> lower, upper = model.predict_interval(X[300:], coverage=0.9)
    >>> bool(0.8 < ((lower < y[300:]) & (y[300:] < upper)).mean() < 1.0)
    True

    """

    coordinates_: Any

    defaults: ClassVar[dict[str, Callable[[], Any]]] = {"bank": KernelBank.default}

    def __init__(
        self,
        bank: Any = None,
        *,
        pooled: bool | None = None,
        spread: float = 2.0,
        features: Any = None,
        exact_up_to: int = 3000,
        tol: float = 0.01,
        max_iter: int = 50,
        memory_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.bank = bank
        self.pooled = pooled
        self.spread = spread
        self.features = features
        self.exact_up_to = exact_up_to
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the kernel weights, the noise and the regression from samples X and their real targets y."""
        self._check_parameters()
        reset(self)
        require_same_rows(X, y)
        given, X = (X, y), check_input(self, X, reset=True)
        n = n_rows(X)
        Y = real_targets(y, n)
        weight = checked_weights(sample_weight, Y)
        self._mean_weight_ = _mean_of_positive(weight)
        weight = weight / self._mean_weight_
        self._target_means_ = weight @ Y / weight.sum()
        Y = _without_rounding(Y - self._target_means_, Y)
        kernels = self._exact_kernels(X, n)
        with blas_threads(self._n_threads):
            if kernels is None:
                self._fit_on_features(X, Y, weight)
            else:
                self._fit_on_kernels(kernels, Y, weight)
        note_columns(self, *given)
        self._warn_if_open()
        return self

    def predict(self, X: Any, return_std: bool = False, diagonals: Any = None) -> Any:
        """Return the target of each sample, or one column per target where there are several.

        Parameters
        ----------
        X : samples as for ``fit``
        return_std : bool, default=False
            Whether to return standard deviations too: those of the target of a new sample, noise included.
        diagonals : array of shape (rows, M) or None, default=None
            k_m(x, x) of each row, which the spread needs of given kernels, as they are no entries of their rows.
        """
        if not return_std:
            return self._values(X)
        mean, variance = self._predictive(X, diagonals)
        return self._shaped(mean), self._shaped(np.sqrt(variance))

    def predict_interval(
        self, X: Any, coverage: float = 0.9, diagonals: Any = None
    ) -> tuple[AnyArray, AnyArray]:
        """Return lower and upper ends that hold this share of the targets of new samples, each as ``predict`` does.

        They hold less with few samples where targets are not pooled, for the weights are then taken as known.
        ``diagonals`` as for ``predict``.
        """
        check_number("coverage", coverage, above=0.0, below=1.0)
        mean, std = self.predict(X, return_std=True, diagonals=diagonals)
        half = float(student.ppf(0.5 + 0.5 * coverage, self._dof_)) * std
        return mean - half, mean + half

    def score_by_kernel(self, X: Any, y: Any) -> AnyArray:
        """Return what each kernel adds to R², (M,) or (targets, M): the product measure.

        The sum over the kernels is R² of the predictions, but for a difference of their mean from that of y. A
        kernel that makes predictions worse has a negative part.
        """
        parts = self._kernel_parts(X)  # (rows, targets, M)
        Y = real_targets(y, len(parts))
        parts = parts - parts.mean(axis=0)
        centred = Y - Y.mean(axis=0)
        found = np.einsum("rtm,rt->tm", parts, 2.0 * centred - parts.sum(axis=2))
        return np.asarray(self._per_target(found / np.sum(centred**2, axis=0)[:, None]))

    # -- fitting

    def _check_parameters(self) -> None:
        if self.spread != np.inf:
            check_number("spread", self.spread, above=0.0)
        check_number("tol", self.tol, above=0.0)
        check_count("max_iter", self.max_iter)
        check_count("exact_up_to", self.exact_up_to, least=2)
        check_number("memory_limit", self.memory_limit, above=0.0, optional=True)
        if self.pooled not in (True, False, None):
            raise ValueError(f"pooled must be True, False or None; got {self.pooled!r}.")
        if self.features is not None:
            check_part("features", self.features, Features, "Landmarks(300)")
            if is_precomputed(self.bank):
                raise ValueError("Features need a bank that computes its kernels; got bank='precomputed'.")

    def _exact_kernels(self, X: Any, n: int) -> FittedKernels | None:
        """Return the kernels of the training samples where they are used as they are, None for features."""
        given = is_precomputed(self.bank)
        if self.features is not None or (n > self.exact_up_to and not given):
            return None
        kernels = as_bank(self.part("bank")).fit(X)
        advice = "use fewer samples" if given else "lower exact_up_to, so that landmarks take their place"
        what = f"{len(kernels)} kernels of {n} samples"
        require_room(
            exact_bytes(n, len(kernels)), self.memory_limit, what, f"raise memory_limit, or {advice}"
        )
        return kernels

    def _fit_on_kernels(self, kernels: FittedKernels, Y: Matrix, weight: Vector) -> None:
        components, self.coordinates_ = centred_components(
            _training_grams(kernels, self._n_threads), len(kernels), Y, weight
        )
        self.bank_, self._weight_ = kernels, weight
        B = self._learn(components, kernels.names)
        coef, shift = self.coordinates_.coefficients(B)
        self.dual_coef_ = np.ascontiguousarray(coef.transpose(2, 0, 1))
        self.intercept_ = self._target_means_ + shift
        self.storage_ = Storage(f"{len(kernels)} kernels in float64", 0.0)

    def _fit_on_features(self, X: Any, Y: Matrix, weight: Vector) -> None:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        rows = np.sort(rng.permutation(len(Y))[:N_SAMPLE])
        few = _safe_indexing(X, rows)
        kernels = as_bank(self.part("bank")).fit(few)
        made = Landmarks(n_landmarks(len(kernels))) if self.features is None else self.features
        features = made.fit(kernels, few, rng)
        n_features, n_used = int(features.offsets[-1]), min(int(features.offsets[-1]), MOST_COORDINATES)
        needed = exact_bytes(n_used, len(kernels)) + (2 + 2 * self._n_threads) * n_features**2 * FLOAT64_BYTES
        what = f"The products of {n_features} features"
        require_room(needed, self.memory_limit, what, "raise memory_limit, or use fewer landmarks")
        shift = features.transform(_safe_indexing(few, slice(0, 1000))).mean(axis=0)
        samples = TableBlocks(X, Y, weight, self._n_threads)
        sums = samples.add_up(sums_over_block, features, shift)
        components, self.coordinates_ = feature_components(
            sums, shift, features.offsets, _dof(weight), MOST_COORDINATES
        )
        self.features_, self.used_columns_ = features, tuple(kernels.columns)
        self._weight_ = weight
        B = self._learn(components, kernels.names)
        coef, shift = self.coordinates_.coefficients(B)
        self.feature_coef_ = [
            (one if T is None else T @ one) if one.any() else None
            for one, T in zip(coef, features.transforms, strict=True)
        ]
        self.intercept_ = self._target_means_ + shift
        eta = np.atleast_2d(self.kernel_weights_).mean(axis=0)
        held = TableBlocks(few, Y[rows], weight[rows])
        error = approximation_error(kernels, features, held, eta, centre=True)
        self.storage_ = Storage(
            f"{len(kernels)} kernels by {made!r}: approximate; on {min(500, len(rows))} samples the combined "
            f"kernel differs by {error:.1%}",
            error,
        )

    def _learn(self, components: Components, names: tuple[str, ...]) -> AnyArray:
        """Set what is learnt of the weights, and return the coefficients of the mean in the coordinates."""
        n_targets = components.Y.shape[1]
        pooled = n_targets >= POOLED_FROM if self.pooled is None else self.pooled
        solver: Any = PooledEvidence() if pooled else EvidenceNewton(self.spread, self.tol, self.max_iter)
        posterior = learn(components, solver)
        self.posterior_, self.centred_targets_, self._dof_ = posterior, components.Y, components.dof
        self.kernel_names_ = names
        variances, noise = posterior.variances, posterior.noise
        total = variances.sum(axis=1) + noise
        shares = np.divide(
            variances, total[:, None], out=np.zeros_like(variances), where=total[:, None] > 0.0
        )
        self.kernel_weights_ = self._per_target(variances * self.coordinates_.factors)
        self.explained_variance_ratio_ = self._per_target(shares)
        self.noise_variance_ = self._per_target(noise * self._mean_weight_)
        # The coordinates are √w_i times the samples; the likelihood is that of the samples.
        of_samples = 0.5 * float(np.log(self._weight_[self._weight_ > 0.0]).sum())
        self.log_evidence_ = self._per_target(posterior.log_evidence + of_samples)
        self.gradient_norm_ = None if posterior.slopes is None else self._per_target(posterior.slopes)
        self.prior_gap_, self.n_iter_ = posterior.prior_gap, posterior.n_iter
        return posterior.coefficients(components)

    def _warn_if_open(self) -> None:
        gains = self.posterior_.gains
        if gains is not None and gains.max() >= self.tol:
            warnings.warn(
                f"The search for kernel weights ended where a further step is expected to raise the log likelihood "
                f"by {gains.max():.2g}, above tol={self.tol:g}, in {(gains >= self.tol).sum()} of {gains.size} "
                "targets; raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    # -- new samples

    def _values(self, X: Any) -> AnyArray:
        self._require_fit()
        if self._is_on_features:
            return super()._values(X)
        X = check_input(self, X, reset=False)
        used = np.flatnonzero(self.dual_coef_.any(axis=(0, 2)))
        columns = np.arange(self.dual_coef_.shape[2])
        V = np.ascontiguousarray(self.dual_coef_[:, used].transpose(1, 2, 0))

        def of(rows: Any) -> Matrix:
            if len(self.intercept_) < FEW_TARGETS:
                parts = self.bank_.products(rows, columns, V, used, self._n_threads)
                return np.asarray(parts.sum(axis=0))
            total = np.zeros((n_rows(rows), len(self.intercept_)))
            place = {int(m): k for k, m in enumerate(used)}
            for m, K in self.bank_.cross(rows, used):
                total += K @ V[place[m]]
            return total

        if not used.size:
            return self._shaped(np.tile(self.intercept_, (n_rows(X), 1)))
        results = used.size * max(len(self.intercept_), columns.size)
        with blas_threads(self._n_threads):
            return self._shaped(in_slices(X, of, results, self.bank_) + self.intercept_)

    def _kernel_parts(self, X: Any) -> AnyArray:
        self._require_fit()
        if self._is_on_features:
            return super()._kernel_parts(X)
        X = check_input(self, X, reset=False)
        columns = np.arange(self.dual_coef_.shape[2])
        return contributions(self.bank_, X, self.dual_coef_, columns, self._n_threads)

    def _predictive(self, X: Any, diagonals: Any) -> tuple[Matrix, Matrix]:
        """Return means and variances of the targets of new samples, (rows, T) each."""
        self._require_fit()
        X = check_input(self, X, reset=False)
        noise = self._mean_weight_ + 1.0 / self._weight_.sum()
        if diagonals is not None:
            diagonals = _checked_diagonals(diagonals, n_rows(X), len(self.kernel_names_))
        n_kernels, d = len(self.kernel_names_), len(self.centred_targets_)
        size = max(1, VALUES_PER_SLICE // (n_kernels * d))
        found = []
        with blas_threads(self._n_threads):
            components = self._components()
            for start in range(0, n_rows(X), size):
                part = slice(start, min(start + size, n_rows(X)))
                known = None if diagonals is None else diagonals[part]
                at = self._in_coordinates(_rows_of(X, part), known)
                found.append(self.posterior_.predictive(components, *at, noise))
        mean, variance = (np.concatenate(one) for one in zip(*found, strict=True))
        return mean + self._target_means_, variance

    def _components(self) -> Components:
        """Return the kernels of the training samples in the coordinates, made again."""
        rest = np.zeros(self.centred_targets_.shape[1])
        if self._is_on_features:
            K = self.coordinates_.kernels()
        else:
            grams = _training_grams(self.bank_, self._n_threads)
            Y = np.zeros((self.bank_.n_samples, 1))
            K = centred_components(grams, len(self.bank_), Y, self._weight_)[0].K
        return Components(K, self.centred_targets_, rest, self._dof_)

    def _in_coordinates(self, X: Any, diagonals: Matrix | None) -> tuple[AnyArray, Matrix]:
        """Return new samples in the coordinates, (M, rows, d), and their k_m(x, x), (M, rows)."""
        if self._is_on_features:
            Phi = self.features_.transform(X)
            known = self.features_.diagonals(X) if diagonals is None else diagonals
            return self.coordinates_.rows(Phi), self.coordinates_.diagonals(Phi, known)
        known = self.bank_.diagonals(X) if diagonals is None else diagonals
        found = dict(self.bank_.cross(X))
        K = [found[m] for m in range(len(found))]
        return self.coordinates_.rows(K), self.coordinates_.diagonals(K, known)

    def _per_target(self, values: AnyArray) -> Any:
        """Return values of targets as they are shown: without that axis where y is one column."""
        return values if len(values) > 1 else (float(values[0]) if values.ndim == 1 else values[0])


def exact_bytes(n_samples: int, n_kernels: int) -> int:
    """Return the bytes of a fit on matrices: the kernels, the same in single precision, and a few of their size."""
    return int((1.5 * n_kernels + 4.0) * n_samples**2 * FLOAT64_BYTES)


def n_landmarks(n_kernels: int) -> int:
    """Return how many landmarks there are by default: all kernels together have few enough features."""
    return max(50, min(500, MOST_FEATURES // n_kernels))


def _training_grams(kernels: FittedKernels, n_threads: int) -> Iterable[tuple[int, Matrix]]:
    """Return the numbered Gram matrices of the training samples, checked where they were given."""
    return (
        enumerate(kernels.given_matrices(n_threads)) if kernels.holds_matrices else kernels.numbered_grams()
    )


def _rows_of(X: Any, part: slice) -> Any:
    """Return some samples, which may be a list of kernel matrices."""
    return [K[part] for K in X] if isinstance(X, list | tuple) else _safe_indexing(X, part)


def _dof(weight: Vector) -> int:
    return int(np.count_nonzero(weight)) - 1


def _mean_of_positive(weight: Vector) -> float:
    """Return the mean of the weights that count, checked to be of three samples at least."""
    positive = weight[weight > 0.0]
    if positive.size < 3:
        raise ValueError(
            f"Weights and noise are estimated from 3 samples at least, with a weight above 0; got n_samples = "
            f"{positive.size}."
        )
    return float(positive.mean())


def _without_rounding(centred: Matrix, Y: Matrix) -> Matrix:
    """Return centred targets, exactly zero where only rounding is left of one."""
    rounding = 1e-12 * np.abs(Y).max(axis=0)
    return np.where(np.abs(centred).max(axis=0) <= rounding, 0.0, centred)


def _checked_diagonals(diagonals: Any, n_samples: int, n_kernels: int) -> Matrix:
    found = check_array(diagonals, dtype=np.float64, input_name="diagonals", ensure_2d=False)
    if found.shape != (n_samples, n_kernels):
        raise ValueError(
            f"diagonals must hold k(x, x) of {n_samples} rows for {n_kernels} kernels, an array of shape "
            f"({n_samples}, {n_kernels}); received shape {found.shape}."
        )
    return np.asarray(found)
