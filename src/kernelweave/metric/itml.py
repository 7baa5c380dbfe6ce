"""ITML: the metric closest to a prior that brings similar pairs together and keeps dissimilar ones apart."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from kernelweave._typing import AnyArray, Vector
from kernelweave.estimators.base import forget
from kernelweave.estimators.parameters import check_count, check_number
from kernelweave.estimators.progress import gap_bars
from kernelweave.metric.inputs import Pairs, named, read_pairs, read_privileged, read_signs
from kernelweave.metric.logdet import MetricProblem, MetricResult, Space, distance_percentiles, solve
from kernelweave.metric.mahalanobis import MahalanobisMetric, components_of, distances
from kernelweave.metric.setting import as_prior, check_bounds
from kernelweave.metric.threshold import best_threshold

REASONS = {
    "max_iter": "max_iter={n} sweeps were made; raise max_iter or tol",
    "broken": "distances left the range of double numbers; scale the features, or lower gamma or kappa",
    "steady": "the uncorrected steps of the thesis have come to rest; projections='corrected' goes on",
    "interrupted": "it was interrupted; the best metric so far is kept",
}


@dataclass(eq=False, repr=False, kw_only=True)
class ITML(MahalanobisMetric):
    r"""Information-theoretic metric learning: a Mahalanobis metric from pairs, with a certificate.

    minimise D(M, M0) + gamma Σ l(ξ, goal), where v'Mv ≤ ξ on similar and v'Mv ≥ ξ on dissimilar pairs, D is
    the LogDet divergence, l the same for numbers, and the goal is u on similar, l on dissimilar pairs.

    Parameters
    ----------
    gamma : float, default=1.0
        Price of missing the goals: near 0 the metric stays at the prior; large values take many sweeps.
    prior : "identity", "covariance" or array of shape (d, d), default="identity"
        M0. "covariance" is the inverse covariance of the points.
    bounds : (u, l) or None, default=None
        Squared distances that similar pairs should stay below, dissimilar ones above. None takes the 3rd and
        97th percentile of the squared distances (under the prior) between the points.
    max_iter : int, default=1000
        Most sweeps over the pairs.
    tol : float, default=1e-7
        Relative duality gap to stop at. The metric's error goes with its square root.
    preprocessor : array of shape (n_points, d) or None, default=None
        The table of points; then pairs may be given as indices (n, 2) and nothing is copied.
    random_state : int, RandomState or None, default=None
        Seed of the order of the pairs, a new one in every sweep; it changes the result within ``tol`` only.
    verbose : int, default=0
        1 shows a bar with the gap.

    Attributes
    ----------
    components_ : array of shape (d, d), L with M = L'L
    bounds_ : (u, l) in use
    threshold_ : distance up to which `predict` says similar; the most accurate one on the training pairs
    classes_ : -1 and 1; to scikit-learn's splitters and scorers this is a classifier of pairs
    multipliers_ : array of shape (n_pairs,), how much each pair pulled; 0 where its goal was met anyway
    certificate_, duality_gap_, objective_, history_, n_iter_ : as in `MKLClassifier`; iterations are sweeps
    n_features_in_ : d

    Notes
    -----
    [Xu14, Eq. (5.2)], [Davis07]. Cyclic Bregman projections with a multiplier per pair that is given back
    when the pair is satisfied, step gamma/(gamma+1)·(1/p − 1/ξ), in a new random order every sweep. The
    distance to the optimum is bounded too: D(M*, M) ≤ ``certificate_.gap``.
    Symbols: M, u, l, γ as there; λ_ij → ``multipliers_``.
    Differs from the paper: bounds are percentiles of *squared* distances, because they bound such; pairs are
    reshuffled, which saves most of the sweeps (figures in docs/theory.md); it stops on the duality gap.
    metric-learn takes percentiles of unsquared distances unless bounds are given, visits similar pairs first
    and stops on the change of the multipliers. Given the same bounds its metric nears this one: on pairs of
    iris and wine (gamma 0.1 and 1) it came within 1e-5, relatively, after 89 to 5000 sweeps.
    A dissimilar pair at distance zero cannot be told apart by any metric: it is left out, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import ITML
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> pairs = X.reshape(30, 2, 3)
    >>> y = np.where(abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)  # only the first feature matters
    >>> model = ITML(random_state=0).fit(pairs, y)
    >>> bool(np.diag(model.get_mahalanobis_matrix()).argmax() == 0), model.duality_gap_ < 1e-7
    (True, True)

    """

    gamma: float = 1.0
    prior: Any = "identity"
    bounds: Any = None
    max_iter: int = 1000
    tol: float = 1e-7
    preprocessor: Any = None
    random_state: Any = None
    verbose: int = 0

    def fit(self, pairs: Any, y: Any, privileged: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Learn the metric from pairs (n, 2, d) and y = ±1; ``sample_weight`` multiplies gamma per pair.

        Pairs of weight 0 decide nothing: neither the metric nor its bounds nor the threshold.
        ``privileged`` is not looked at: it is there so that ITML can stand where `ITMLPlus` does.
        """
        return self._fit(pairs, y, None, sample_weight)

    def _fit(self, pairs: Any, y: Any, privileged: Any, sample_weight: Any) -> Self:
        self._check_parameters()
        forget(self)
        checked = read_pairs(pairs, self.preprocessor)
        sign = read_signs(y, len(checked))
        weight = _check_sample_weight(sample_weight, sign, dtype=np.float64, ensure_non_negative=True)
        known = read_privileged(privileged, checked, np.ndim(pairs) == 2)
        used = (weight > 0.0) & self._tellable(checked, sign)
        if not used.any():
            raise ValueError(
                "No pair is left to learn from: all are dissimilar at distance zero or have weight 0."
            )
        problem = self._problem(checked, sign, weight, used, known)
        self._solve(problem, used)
        self._calibrate(Pairs(checked.points, checked.ends[used]), sign[used], weight[used])
        self.classes_ = np.array([-1, 1])
        return self

    def _check_parameters(self) -> None:
        check_number("gamma", self.gamma, above=0.0)
        check_number("tol", self.tol, above=0.0, below=1.0)
        check_count("max_iter", self.max_iter)

    def _tellable(self, pairs: Pairs, sign: Vector) -> AnyArray:
        hopeless = (sign < 0.0) & ~pairs.differ
        if hopeless.any():
            warnings.warn(
                f"{int(hopeless.sum())} dissimilar pairs consist of two equal points ({named(hopeless)}): no "
                "metric tells them apart, they are left out.",
                stacklevel=5,
            )
        return ~hopeless

    def _problem(
        self,
        pairs: Pairs,
        sign: Vector,
        weight: Vector,
        used: AnyArray,
        known: tuple[Pairs, AnyArray] | None,  # noqa: ARG002 - for those with privileged features
    ) -> MetricProblem:
        """Return the problem of the used pairs, in which every slack is a pair's own."""
        self.n_features_in_ = pairs.points.shape[1]
        ends, sign, weight = pairs.ends[used], sign[used], weight[used]
        points = pairs.used_points(used)
        prior = as_prior("prior", self.prior, points, self.n_features_in_)
        if self.bounds is None:
            found = distance_percentiles(points, prior, (3.0, 97.0))
            self.bounds_ = check_bounds(found, learnt=True)
        else:
            self.bounds_ = check_bounds(self.bounds)
        return MetricProblem(
            space=Space(pairs.points, np.ascontiguousarray(ends), prior),
            privileged=Space(np.zeros((1, 1)), np.zeros_like(ends), np.eye(1)),
            sign=sign,
            goal=np.where(sign > 0.0, *self.bounds_),
            gamma=self.gamma * weight,
            cap=np.full(len(sign), np.inf),
            told=np.zeros(len(sign), dtype=bool),
            reach=np.ones(len(sign)),
            lam=1.0,
        )

    def _corrected(self) -> bool:
        return True

    def _solve(self, problem: MetricProblem, used: AnyArray) -> None:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        with gap_bars(self.verbose, "look") as bar:
            result = solve(
                problem,
                tol=self.tol,
                max_iter=self.max_iter,
                rng=rng,
                corrected=self._corrected(),
                progress=bar("metric", self.tol),
            )
        self._keep(result, used)
        if result.stopped != "converged":
            warnings.warn(
                f"Stopped at a relative duality gap of {self.duality_gap_:.2e}, above tol={self.tol:.2e}: "
                f"{REASONS[result.stopped].format(n=result.n_sweeps)}.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _keep(self, result: MetricResult, used: AnyArray) -> None:
        self.components_ = components_of(result.M)
        self.multipliers_ = np.zeros(len(used))
        self.multipliers_[used] = result.a
        self.certificate_ = result.certificate
        self.duality_gap_ = result.certificate.relative_gap
        self.objective_ = result.certificate.upper
        self.history_ = list(result.history)
        self.n_iter_ = result.n_sweeps

    def _calibrate(self, pairs: Pairs, sign: Vector, weight: Vector) -> None:
        if len(np.unique(sign)) == 2:
            self.threshold_ = best_threshold(distances(pairs, self.components_), sign, weight=weight)
        else:  # one kind of pairs says nothing of the other: half way between the goals
            self.threshold_ = float(np.mean(np.sqrt(self.bounds_)))
