"""Which solver a fit takes if none is asked for."""

import pytest

from kernelweave.estimators.training import choose
from kernelweave.geometry import BoxSimplex, ElasticNetBall, LpBall, Simplex
from kernelweave.solvers import BlockDescent, ColumnGeneration, Newton


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
        (LpBall(1.5), 1e-6, 2000, BlockDescent),
    ],
)
def test_the_closed_form_is_for_sets_where_it_is_quick(geometry, tol, n_kernels, solver):
    assert type(choose(geometry, n_kernels, tol)) is solver
