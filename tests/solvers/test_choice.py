"""Which solver is used where none was asked for."""

import pytest

from kernelweave.geometry import BoxSimplex, ElasticNetBall, GroupBox, LpBall, RidgeSimplex, Simplex
from kernelweave.solvers import BlockDescent, ColumnGeneration, Newton, choose_solver, solver_with_defaults


@pytest.mark.parametrize(
    ("geometry", "n_kernels", "tol", "expected"),
    [
        (Simplex(), 10, 1e-3, Newton),
        (LpBall(2.0), 10, 1e-3, BlockDescent),
        (LpBall(2.0), 10, 1e-6, Newton),  # the closed form's many steps no longer pay
        (LpBall(4.0), 10, 1e-5, BlockDescent),
        (LpBall(1.5), 10, 1e-3, Newton),
        (ElasticNetBall(0.5), 10, 1e-3, Newton),
        (BoxSimplex(nu=0.3), 10, 1e-3, Newton),
        (Simplex(), 2000, 1e-3, ColumnGeneration),
        (RidgeSimplex(), 2000, 1e-3, ColumnGeneration),
        (BoxSimplex(theta=0.05), 2000, 1e-3, ColumnGeneration),
        (BoxSimplex(theta=0.005), 2000, 1e-3, BlockDescent),  # two hundred kernels must be used
        (LpBall(1.1), 2000, 1e-6, BlockDescent),
        (GroupBox([0] * 2000, 1.0), 2000, 1e-3, BlockDescent),
    ],
    ids=repr,
)
def test_the_solver_with_least_work_is_chosen(geometry, n_kernels, tol, expected):
    assert type(choose_solver(geometry, n_kernels, tol)) is expected


def test_what_a_solver_says_itself_counts_more_than_the_estimator():
    asked = Newton(tol=1e-7)
    filled = solver_with_defaults(asked, Simplex(), 10, tol=1e-3, max_iter=7)
    assert filled == Newton(tol=1e-7, max_iter=7)
    assert asked.max_iter is None
    assert solver_with_defaults(Newton(max_iter=3), Simplex(), 10, 1e-3, 7) == Newton(tol=1e-3, max_iter=3)
    chosen = solver_with_defaults(None, LpBall(2.0), 10, 1e-3, None)
    assert chosen == BlockDescent(tol=1e-3, relaxation=0.7)
