"""The geometry's share of the duality gap."""

import numpy as np
import pytest

from kernelweave.geometry import LpBall, RidgeSimplex, Simplex, fenchel_young_gap


def test_the_gap_is_value_plus_conjugate_minus_product():
    eta, h = np.array([0.25, 0.75]), np.array([2.0, 1.0])
    assert fenchel_young_gap(Simplex(), eta, h) == pytest.approx(2.0 - 1.25)
    assert fenchel_young_gap(LpBall(2.0), np.array([0.6, 0.8]), np.array([3.0, 4.0])) == pytest.approx(
        0.0, abs=1e-15
    )
    # ridge: 0.3125 / (2 theta) + conjugate - product; at theta = 1 the best answer to h is (1, 0)
    assert fenchel_young_gap(RidgeSimplex(1.0), eta, h) == pytest.approx(0.3125 + 1.5 - 1.25)


def test_a_point_outside_has_an_infinite_gap():
    assert fenchel_young_gap(Simplex(), np.array([0.7, 0.7]), np.ones(2)) == np.inf
