r"""The limit p = 1, where the norm over the kernels is no power of sums: simplex MKL with all classes in one machine.

½(Σ_j ‖w^j‖)² is the least of Σ_j ‖w^j‖²/(2 eta_j) over eta on the simplex. So the problem is the saddle point of all
convex MKL, with the machine of Crammer and Singer (without intercept) as its learner, and any solver of weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.geometry import Simplex
from kernelweave.gram import GramStack
from kernelweave.learners import InnerSolution, Learner
from kernelweave.learners.base import positive
from kernelweave.multiclass.dual_model import DualModel
from kernelweave.multiclass.problem import PNormResult, rival_leads, sample_gaps
from kernelweave.solvers import (
    Certificate,
    CuttingPlane,
    Problem,
    Progress,
    ProjectedGradient,
    Record,
    WarmStart,
)


@dataclass
class CrammerSinger(Learner):
    r"""The multiclass hinge loss, all classes in one problem and without intercept [Crammer01].

    .. math:: \min_w \tfrac12 \|w\|^2 + C \sum_i \max_{c \ne y_i} [1 - f_{y_i}(x_i) + f_c(x_i)]_+

    The dual: max Σ_i v_{i,y_i} − ½ tr(v'Kv) over v (n × classes) with rows of sum zero and v_ic ≤ C [c = y_i].

    Parameters
    ----------
    C : price of a margin violation.
    n_classes : number of classes; labels are their numbers, from 0 on.
    max_sweeps : most sweeps over the samples per solve.

    Notes
    -----
    Coordinate ascent, one sample after the other as in `DualAscent`; bounds as in [Orabona10, Eq. (9)] times CN.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.multiclass.crammer_singer import CrammerSinger
    >>> found = CrammerSinger(C=1.0, n_classes=3).solve(np.eye(3), np.arange(3), tol=1e-6)
    >>> round(found.primal, 4), found.coef.round(2)
    (1.0, array([[ 0.67, -0.33, -0.33],
           [-0.33,  0.67, -0.33],
           [-0.33, -0.33,  0.67]]))

    """

    C: float = 1.0
    n_classes: int = 2
    max_sweeps: int = 1000

    @property
    def has_bias(self) -> bool:
        return False

    def for_columns(self) -> CrammerSinger:
        return self

    def check(self, y: AnyArray, weight: Vector) -> None:  # noqa: ARG002 - every label and weight will do
        positive("CrammerSinger.C", self.C)

    def measure(
        self, f: AnyArray, coef: AnyArray, y: AnyArray, weight: Vector | None = None
    ) -> InnerSolution:
        weight = np.ones(y.size) if weight is None else weight
        losses = weight * np.maximum(1.0 + rival_leads(f.T, y), 0.0)
        return InnerSolution(
            coef=coef,
            intercept=np.zeros(self.n_classes),
            margin=np.ones(self.n_classes),
            g=float(coef[np.arange(y.size), y].sum()),
            quadratic=float(np.vdot(coef, f)),
            loss=self.C * float(losses.sum()),
            gradient_bound=self.C * float(np.sqrt(2.0) * np.linalg.norm(weight)),
            curvature_bound=0.0,
            programs=(),
        )

    def solve(
        self,
        K: AnyArray,
        y: AnyArray,
        weight: Vector | None = None,
        warm: AnyArray | None = None,
        tol: float = 1e-3,
    ) -> InnerSolution:
        weight = np.ones(y.size) if weight is None else weight
        y, rng = y.astype(np.int64), np.random.default_rng(0)
        # In units of C: A_ic ≤ weight_i [c = y_i].
        A = np.zeros((y.size, self.n_classes)) if warm is None else warm / self.C
        for _ in range(self.max_sweeps):
            # Scores anew before each round: what sweeps add up is rounded.
            f = self.C * np.asarray(K @ A, dtype=np.float64)
            found = self.measure(f, self.C * A, y, weight)
            if found.relative_gap <= tol or not self._sweep(K, f, A, y, weight, rng, found.gap):
                break
        return found

    def _sweep(
        self,
        K: AnyArray,
        f: Matrix,
        A: Matrix,
        y: AnyArray,
        weight: Vector,
        rng: np.random.Generator,
        gap: float,
        most: int = 20,
    ) -> int:
        """Visit the samples with a gap until a tenth of it is left; return how many visits moved something."""
        scale = 1.0 / self.C
        energy = float(np.vdot(A, f)) * scale
        model = DualModel(
            K, (f * scale)[None], np.ones(1), np.array([energy]), np.diagonal(K).astype(float), scale, 2.0
        )
        moved = 0
        for _ in range(most):
            scores = model.scores()
            gaps = sample_gaps(A, scores, rival_leads(scores, y), y, weight)
            if self.C * gaps.sum() <= 0.1 * gap:
                break
            count = model.visit(A, y, weight, rng.permutation(np.flatnonzero(gaps > 0.1 * gaps.mean())))
            moved += count
            if not count:
                break
        return moved


def solve_on_simplex(
    grams: GramStack,
    y: AnyArray,
    n_classes: int,
    C: float,
    weight: Vector,
    tol: float,
    max_iter: int = 200,
    progress: Progress | None = None,
) -> PNormResult:
    """Solve the problem of p = 1 [Orabona10, Eq. (8)]; bounds are in units of its objective, with λ = 1/(CN)."""
    lam = 1.0 / (C * y.size)

    def in_units(certificate: Certificate) -> Certificate:
        return Certificate(lam * certificate.upper, lam * certificate.lower)

    def report(record: Record) -> None:
        assert progress is not None
        progress(replace(record, certificate=in_units(record.certificate)))

    problem = Problem(grams, y, CrammerSinger(C, n_classes), Simplex(), weight)
    watched = None if progress is None else report
    found = ProjectedGradient(tol=tol, max_iter=max_iter).run(problem, progress=watched)
    if found.stopped == "stalled" and found.n_iter < max_iter:
        # Where most coefficients are at their bounds the objective is nearly piecewise linear in the weights: it has
        # kinks, at which gradient steps stall and planes do not.
        planes = CuttingPlane(tol=tol, max_iter=max_iter - found.n_iter)
        found = found.followed_by(planes.run(problem, WarmStart(found.eta, found.inner.coef), watched))
    coef = found.inner.coef
    history = tuple(replace(one, certificate=in_units(one.certificate)) for one in found.history)
    norms = found.eta * np.sqrt(2.0 * np.maximum(grams.energies(coef), 0.0))
    stopped = {"max_iter": "max_passes", "rounding": "stalled"}.get(found.stopped, found.stopped)
    return PNormResult(coef, found.eta, norms, in_units(found.certificate), history, found.n_iter, stopped)
