"""ITML+: slacks of metric learning from privileged features, which only the training pairs have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from kernelweave._typing import AnyArray, Matrix
from kernelweave.estimators.validation import check_choice, check_number
from kernelweave.metric.inputs import TrainingPairs, check_prior
from kernelweave.metric.itml import ITML
from kernelweave.metric.problem import LogDetProblem, PairSpace, distance_percentiles
from kernelweave.metric.projections import BregmanProjections, MetricResult


@dataclass(eq=False, repr=False, kw_only=True)
class ITMLPlus(ITML):
    r"""ITML with privileged information: slacks are distances in a space known at training time only.

    minimise D(M, M0) + lam D(P, P0) + Σ [gamma l(s, goal) + (kappa/goal) max(0, ±(p − s))],
    p = v'Mv, s = w'Pw, with + on similar and − on dissimilar pairs; pairs without privileged features have
    ITML's slack and loss.

    Parameters
    ----------
    gamma, prior, bounds, max_iter, tol, preprocessor, random_state, verbose
        As in `ITML`.
    lam : float, default=1.0
        Price of leaving the privileged prior: large values keep P there.
    kappa : float or None, default=1.0
        Price of p and s in the wrong order, relative to the goal: small values decouple the two metrics. None
        is the hard form, which many sets of pairs have no solution of; that is proved and raised.
    privileged_prior : "identity", "matched", "covariance", "random" or array (g, g), default="identity"
        P0. "matched" is the identity times the factor that gives privileged distances the size of the others.
    projections : {"corrected", "uncorrected"}, default="corrected"
        "uncorrected" are the steps of the thesis's Algorithm 6: they need kappa=None, stop at rest, and miss
        the optimum by some percent, which the certificate shows. They are taken even where
        the hard form has no solution: then there is no upper bound, and ``duality_gap_`` is infinite.

    Attributes
    ----------
    privileged_matrix_ : array of shape (g, g), the learnt P; None where no pair had privileged features
    told_ : bool array of shape (n_pairs,), the pairs whose slack is a privileged distance
    components_, bounds_, threshold_, multipliers_, certificate_, duality_gap_, objective_, history_, n_iter_,
    n_features_in_ : as in `ITML`

    Notes
    -----
    [Xu14, Eq. (5.4)–(5.13), (5.23), (5.24), (5.30)].
    Symbols: λ → ``lam``, γ → ``gamma``, α_ij → ``multipliers_``, P → ``privileged_matrix_``.
    Differs from the paper: (5.4) has no slack left once ξ = s, and on real pairs it is often infeasible; here
    it is the limit of large ``kappa``. (5.23) takes max{0, ·} afresh at each visit and never gives
    multipliers back; here they are kept between 0 and kappa/goal. With ``privileged`` all NaN or None
    it is `ITML`. Whether it helps is a question for your data: `evaluation.permuted_control` asks it.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import ITMLPlus
    >>> rng = np.random.default_rng(0)
    >>> pairs, privileged = rng.normal(size=(40, 2, 3)), rng.normal(size=(40, 2, 2))
    >>> y = np.where(abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
    >>> privileged[30:] = np.nan  # the last ten pairs have none
    >>> model = ITMLPlus(random_state=0).fit(pairs, y, privileged=privileged)
    >>> model.get_mahalanobis_matrix().shape, int(model.told_.sum()), model.duality_gap_ < 1e-6
    ((3, 3), 30, True)

    """

    lam: float = 1.0
    kappa: float | None = 1.0
    privileged_prior: Any = "identity"
    projections: str = "corrected"

    def fit(
        self,
        pairs: Any,
        y: Any,
        privileged: Any = None,
        sample_weight: Any = None,
        calibration_params: dict[str, Any] | None = None,
    ) -> Self:
        """Learn the metric from pairs (n, 2, d), y = ±1 and privileged features (n, 2, g) of the pairs.

        Rows of NaN in ``privileged`` stand for features that are not known. With ``preprocessor`` it may also
        be a table (n_points, g). ``sample_weight`` multiplies gamma and kappa per pair.
        """
        return self._fit(pairs, y, privileged, sample_weight, calibration_params)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("lam", self.lam, above=0.0)
        check_number("kappa", self.kappa, above=0.0, optional=True)
        check_choice("projections", self.projections, ("corrected", "uncorrected"))
        if self.projections == "uncorrected" and self.kappa is not None:
            raise ValueError(
                f"projections='uncorrected' are the thesis's steps for the hard form: they need kappa=None; "
                f"got kappa={self.kappa!r}."
            )

    def _problem(self, data: TrainingPairs, samples: Matrix) -> LogDetProblem:
        problem = super()._problem(data, samples)
        if not data.has_privileged.any():
            return problem
        price = np.inf if self.kappa is None else float(self.kappa)
        prior = self._privileged_prior(data, problem.space)
        space = PairSpace(data.privileged.points, data.privileged.ends, prior)
        return problem.itml_plus(space, data.has_privileged, float(self.lam), price * data.weight)

    def _privileged_prior(self, data: TrainingPairs, space: PairSpace) -> Matrix:
        points = data.privileged.subset(data.has_privileged).used_points()
        if isinstance(self.privileged_prior, str) and self.privileged_prior == "matched":
            return _matched_prior(points, space)
        return check_prior("privileged_prior", self.privileged_prior, points, self.random_state)

    def _solver(self) -> BregmanProjections:
        return replace(super()._solver(), corrected=self.projections == "corrected")

    def _set_fitted(
        self, result: MetricResult, data: TrainingPairs, used: AnyArray, rule: dict[str, Any]
    ) -> None:
        super()._set_fitted(result, data, used, rule)
        self.told_ = np.zeros(len(used), dtype=bool)
        self.told_[used] = data.has_privileged
        self.privileged_matrix_ = result.P if data.has_privileged.any() else None


def _matched_prior(privileged_points: Matrix, space: PairSpace) -> Matrix:
    """Return the multiple of the identity under which the median distances of both spaces are equal."""
    prior = np.eye(privileged_points.shape[1])
    median = distance_percentiles(space.used_points(), space.prior, (50.0, 50.0))[0]
    privileged_median = distance_percentiles(privileged_points, prior, (50.0, 50.0))[0]
    return prior * (median / privileged_median if privileged_median > 0.0 else 1.0)
