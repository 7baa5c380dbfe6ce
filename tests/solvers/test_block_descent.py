"""The closed form keeps zeros: starts that have some must not."""

import numpy as np
import pytest
from tests.reference.problems import random_problem

from kernelweave.geometry import BoxSimplex, LpBall, Simplex
from kernelweave.gram import DenseGrams
from kernelweave.learners import Hinge
from kernelweave.solvers import BlockDescent, WarmStart


@pytest.mark.parametrize("geometry", [LpBall(2.0), LpBall(1.5), BoxSimplex(theta=0.5), Simplex()])
def test_a_start_on_the_boundary_reaches_the_same_optimum(geometry):
    Ks, y = random_problem(1, n=30, M=4)
    bank = DenseGrams(Ks)
    whole = BlockDescent(tol=1e-3).solve(bank, y, Hinge(1.0), geometry)
    start = geometry.maximizer(np.array([1.0, 0.5, 0.0, 0.0]))
    edge = BlockDescent(tol=1e-3).solve(bank, y, Hinge(1.0), geometry, start=WarmStart(start))
    assert edge.stopped == "converged"
    assert edge.certificate.upper == pytest.approx(whole.certificate.upper, rel=2e-3)
