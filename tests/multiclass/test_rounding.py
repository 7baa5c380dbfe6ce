"""Bounds pay for rounding: what images lost on the way does not reach the certificate."""

import numpy as np
import pytest
from tests.reference.pnorm import objective, pnorm_optimum, pnorm_problem

from kernelweave.multiclass import PNormProblem
from kernelweave.multiclass.certificate import evaluate
from kernelweave.multiclass.dual_ascent import _Walk
from kernelweave.multiclass.result import Tracker
from kernelweave.multiclass.rows import StoredRows
from kernelweave.solvers import DualAscent


class Coarse(StoredRows):
    """Kernels whose products are rounded to six digits or so."""

    @property
    def errors(self):
        return np.full(self.n_kernels, 1e-6)


def problem_of(rows, y, C, p):
    return PNormProblem(rows, y, 3, 1.0 / (C * len(y)), p, np.ones(len(y)))


@pytest.mark.parametrize("p", [1.2, 2.0])
def test_the_upper_bound_exceeds_the_true_value_whatever_rounding_did(p):
    Ks, y = pnorm_problem(2, n=40)
    problem = problem_of(Coarse(Ks), y, 10.0, p)
    solved = DualAscent(tol=1e-2).solve(problem_of(StoredRows(Ks), y, 10.0, p), np.random.default_rng(0))
    A = solved.coef * problem.scale
    G = (Ks @ A).transpose(0, 2, 1)
    lengths = np.sqrt((A * A).sum(axis=0))
    rng = np.random.default_rng(1)
    short = 0
    for _ in range(50):
        noise = 1e-6 * lengths[None, :, None] * rng.normal(size=G.shape)
        seen = evaluate(problem, A, G + noise, rescale=False)
        true = objective(Ks, y, A / problem.scale, seen.eta, 10.0, p)
        short += seen.upper < true
    assert short == 0


def test_the_proof_makes_its_images_anew():
    Ks, y = pnorm_problem(3, n=40)
    problem = problem_of(StoredRows(Ks), y, 1.0, 1.5)
    optimum = pnorm_optimum(Ks, y, 1.0, 1.5)
    solved = DualAscent(tol=1e-3).solve(problem, np.random.default_rng(0))
    walk = _Walk.start(problem, np.random.default_rng(0))
    walk.A = np.clip(solved.coef * problem.scale, None, 1.0)
    walk.G = 0.9 * (Ks @ walk.A).transpose(0, 2, 1)  # images that have drifted from their coefficients
    tracker = Tracker(problem, None)
    tracker.add(walk.A, walk.evaluate())
    assert not tracker.certificate.lower <= optimum <= tracker.certificate.upper
    proved = walk.proved(tracker).certificate
    assert proved.lower <= optimum * (1 + 1e-8)
    assert optimum <= proved.upper * (1 + 1e-8)
    assert proved.relative_gap < 1e-2
