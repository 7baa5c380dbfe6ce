"""Which solver a fit takes if none is asked for, and what it is asked for."""

import pytest

from kernelweave.geometry import BoxSimplex, ElasticNetBall, LpBall, Simplex
from kernelweave.solvers import BlockDescent, ColumnGeneration, Newton, choose_solver, solver_with_defaults


@pytest.mark.parametrize(
    ("geometry", "tol", "n_kernels", "solver"),
    [
        (LpBall(2.0), 1e-3, 50, BlockDescent),
        (LpBall(2.0), 1e-4, 50, BlockDescent),  # the default tolerance
        (LpBall(4.0), 1e-5, 50, BlockDescent),
        (LpBall(2.0), 1e-6, 50, Newton),
        (LpBall(1.5), 1e-3, 50, Newton),
        (ElasticNetBall(0.5), 1e-3, 50, Newton),
        (Simplex(), 1e-3, 50, Newton),
        (BoxSimplex(nu=0.3), 1e-3, 50, Newton),
        (Simplex(), 1e-4, 2000, ColumnGeneration),
        (BoxSimplex(nu=0.5), 1e-4, 2000, BlockDescent),  # a thousand kernels have to be used
        (LpBall(1.5), 1e-6, 2000, BlockDescent),
    ],
)
def test_the_closed_form_is_for_sets_where_it_is_quick(geometry, tol, n_kernels, solver):
    assert type(choose_solver(geometry, n_kernels, tol)) is solver


def test_a_solver_keeps_its_own_tolerance_and_cap():
    filled = solver_with_defaults(None, Simplex(), 5, 1e-3, 7)
    assert (type(filled), filled.tol, filled.max_iter) == (Newton, 1e-3, 7)
    own = Newton(tol=1e-6, max_iter=3)
    assert solver_with_defaults(own, Simplex(), 5, 1e-3, 7) == own
    half = solver_with_defaults(BlockDescent(tol=1e-6), Simplex(), 5, 1e-3, None)
    assert half == BlockDescent(tol=1e-6)
