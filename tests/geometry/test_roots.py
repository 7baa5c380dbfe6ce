"""The one-dimensional machinery."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.geometry._roots import increasing_root, two_power_root, unit_mass


@settings(max_examples=150, deadline=None)
@given(
    a=st.floats(1e-3, 1e3),
    b=st.floats(-1.0, 1e3),
    j=st.sampled_from([2.001, 2.5, 3.0, 5.0, 21.0]),
    logs=st.lists(st.floats(-20.0, 3.0), min_size=1, max_size=5),
)
def test_two_powers_meet_their_right_hand_side_or_the_unit(a, b, j, logs):
    c = 10.0 ** np.array(logs)
    x = two_power_root(a, j, b, 2.0, c)
    left = a * x**j + b * x**2
    inside = x < 1.0
    size = a * x**j + abs(b) * x**2
    np.testing.assert_allclose(left[inside], c[inside], atol=1e-12 * size[inside].max(initial=0.0), rtol=1e-8)
    assert np.all(a + b <= c[~inside] * (1.0 + 1e-9) + 1e-9 * (a + abs(b)))


def test_a_root_is_found_through_kinks_and_infinite_slopes():
    def kinked(t):
        return (np.sqrt(abs(t - 0.3)) * np.sign(t - 0.3), np.inf if t == 0.3 else 0.5 / np.sqrt(abs(t - 0.3)))

    assert increasing_root(kinked, 0.0, 1.0) == pytest.approx(0.3, abs=1e-14)
    assert increasing_root(lambda t: (np.sign(t - 2e-7), 0.0), 0.0, 1.0) == pytest.approx(2e-7, rel=1e-12)


def test_a_wrong_slope_costs_only_time():
    assert increasing_root(lambda t: (t**3 - 0.2, 1e-9), 0.0, 1.0) == pytest.approx(0.2 ** (1 / 3), rel=1e-14)
    assert increasing_root(lambda t: (t**3 - 0.2, -5.0), 0.0, 1.0) == pytest.approx(0.2 ** (1 / 3), rel=1e-14)


def test_roots_far_below_the_bracket_keep_their_digits():
    root = increasing_root(lambda t: (t / 3e-13 - 1.0, 1.0 / 3e-13), 0.0, 1.0)
    assert root == pytest.approx(3e-13, rel=1e-12)


def test_a_mass_that_jumps_over_one_is_blended():
    def weights(t):
        return np.array([0.4, 0.2 if t <= 1.0 else 0.9])

    for t in (1.0, float(np.nextafter(1.0, 2.0))):
        np.testing.assert_allclose(unit_mass(weights, t, rising=True), [0.4, 0.6], rtol=1e-12)
