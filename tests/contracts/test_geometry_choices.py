"""What geometries offer to those who choose: values to search, and the same set on some of the kernels."""

import numpy as np
import pytest
from tests.geometry.sets import CASES, IDS, M

from kernelweave.geometry import BoxSimplex, GroupBox, LpBall, RidgeSimplex, SupportsWorkingSet

every_case = pytest.mark.parametrize("case", CASES, ids=IDS)
SELECTING = [case for case in CASES if isinstance(case.geometry, SupportsWorkingSet)]


@every_case
def test_its_grid_runs_from_even_weights_to_few_kernels(case, rng):
    geometry = case.geometry
    grid = geometry.grid(M)
    assert bool(grid) == (geometry.tunable is not None)
    shares = []
    h = rng.exponential(size=M)
    for value in grid:
        variant = type(geometry)(**geometry.get_params() | {geometry.tunable: value})
        variant.check(M)
        eta = variant.maximizer(h)
        shares.append(eta.max() / eta.sum())
    assert (np.diff(shares) >= -1e-9).all()
    assert not grid or shares[0] < shares[-1]


@pytest.mark.parametrize("geometry", [BoxSimplex(), BoxSimplex(nu=0.5), GroupBox(), LpBall(), RidgeSimplex()])
def test_its_grid_is_legal_for_one_kernel_too(geometry):
    for value in geometry.grid(1):
        type(geometry)(**geometry.get_params() | {geometry.tunable: value}).check(1)


def test_the_geometries_that_select_are_known():
    names = {type(case.geometry).__name__ for case in SELECTING}
    assert names == {"Simplex", "BoxSimplex", "RidgeSimplex", "PowerSimplex"}


@pytest.mark.parametrize("case", SELECTING, ids=lambda case: str(case.geometry))
def test_some_kernels_alone_are_all_kernels_with_the_others_at_zero(case, rng):
    geometry, least = case.geometry, case.geometry.min_active(M)
    assert 1 <= least <= M
    some = np.sort(rng.permutation(M)[: max(least, M - 2)])
    alone = geometry.restricted(M)
    for _ in range(10):
        eta = alone.project(rng.normal(size=some.size))
        padded = np.zeros(M)
        padded[some] = eta
        assert alone.value(eta) == pytest.approx(geometry.value(padded), rel=1e-12)
        h = rng.exponential(size=M)
        h[np.setdiff1d(np.arange(M), some)] = -1e6  # nobody would take those
        assert alone.conjugate(h[some]) == pytest.approx(geometry.conjugate(h), rel=1e-9)


@pytest.mark.parametrize("case", SELECTING, ids=lambda case: str(case.geometry))
def test_no_point_uses_fewer_kernels_than_promised(case, rng):
    for _ in range(20):
        eta = case.geometry.maximizer(rng.exponential(size=M) * 100.0)
        assert np.count_nonzero(eta) >= case.geometry.min_active(M)
