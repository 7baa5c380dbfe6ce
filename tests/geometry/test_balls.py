"""Weights in whatever proportion have a multiple on the boundary of a ball."""

import numpy as np
import pytest
from tests.geometry.sets import CASES, M

from kernelweave.geometry import LpBall, Scales

BALLS = [case for case in CASES if isinstance(case.geometry, Scales)]


def test_the_lp_ball_scales_and_no_other_set():
    assert {type(case.geometry) for case in BALLS} == {LpBall}


@pytest.mark.parametrize("case", BALLS)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_it_scales_any_weights_to_its_boundary(case, size, rng):
    eta = size * rng.random(M)
    eta[0] = 0.0
    scaled = case.geometry.scaled(eta)
    assert case.contains(scaled)
    assert not case.contains(1.001 * scaled)
    np.testing.assert_allclose(scaled * eta.sum(), eta * scaled.sum(), rtol=1e-12)


@pytest.mark.parametrize("case", BALLS)
def test_nothing_stays_nothing(case):
    assert not case.geometry.scaled(np.zeros(M)).any()
