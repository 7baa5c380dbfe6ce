"""The simplex at its edges."""

import numpy as np
import pytest

from kernelweave.geometry import Simplex


def test_the_support_function_is_the_largest_energy_whatever_its_sign():
    assert Simplex().conjugate(np.array([-3.0, -1.0, -2.0])) == -1.0
    np.testing.assert_array_equal(Simplex().maximizer(np.array([-3.0, -1.0, -2.0])), [0.0, 1.0, 0.0])


def test_the_reduced_direction_descends_and_keeps_the_sum():
    eta = np.array([0.5, 0.0, 0.3, 0.2, 0.0])
    gradient = np.array([0.1, 2.0, -1.0, 0.4, -0.7])
    direction = Simplex().reduced_direction(eta, gradient)
    assert direction.sum() == pytest.approx(0.0, abs=1e-15)
    assert direction @ gradient < 0.0
    assert direction[1] == 0.0
    assert direction[4] > 0.0
