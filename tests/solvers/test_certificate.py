"""The relative gap of two bounds."""

import pytest

from kernelweave.solvers import Certificate

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("bounds", [(NAN, NAN), (1.0, NAN), (NAN, 1.0), (0.0, NAN), (INF, INF)])
def test_bounds_that_are_no_numbers_never_pass_for_converged(bounds):
    assert Certificate(*bounds).relative_gap == INF


def test_the_gap_is_a_share_of_the_objective():
    assert Certificate(1e-6, 0.5e-6).relative_gap == pytest.approx(0.5)
    assert Certificate(0.0, 0.0).relative_gap == 0.0
    assert Certificate(INF, 0.0).relative_gap == 1.0
