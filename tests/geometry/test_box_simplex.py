"""The capped simplex at its edges, exactly."""

import numpy as np
import pytest

from kernelweave.geometry import BoxSimplex, Simplex


def answers(geometry, rng, n):
    """Every verb's answer to the same questions."""
    root = rng.normal(size=(n + 2, n))
    norms = np.where(rng.random(n) < 0.3, 0.0, rng.random(n))
    start = geometry.start(n)
    yield start
    yield geometry.maximizer(rng.random(n))
    yield geometry.project(rng.normal(size=n))
    yield geometry.prox(rng.normal(size=n), 0.7)
    yield geometry.reweight(norms)
    yield geometry.model_step(start, rng.random(n), root.T @ root)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 49, 117])
def test_the_average_kernel_is_theta_one_over_m(n):
    even = np.full(n, 1.0 / n)
    for geometry in (
        BoxSimplex(theta=1.0 / n),
        BoxSimplex(theta=(1.0 - 1e-15) / n),
        BoxSimplex(theta=(1.0 + 1e-15) / n),
        BoxSimplex(nu=1.0),
    ):
        geometry.check(n)
        assert geometry.cap(n) == 1.0 / n
        for answer in answers(geometry, np.random.default_rng(0), n):
            np.testing.assert_array_equal(answer, even)


@pytest.mark.parametrize("geometry", [BoxSimplex(theta=1.0), BoxSimplex(theta=7.0), BoxSimplex(nu=0.1)])
def test_theta_of_one_or_more_is_exactly_the_simplex(geometry):
    for n in (1, 2, 8):
        ours = answers(geometry, np.random.default_rng(1), n)
        theirs = answers(Simplex(), np.random.default_rng(1), n)
        for answer, same in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(answer, same)


def test_the_cap_never_passes_one():
    assert BoxSimplex(theta=7.0).cap(3) == 1.0
    assert BoxSimplex(nu=0.01).cap(3) == 1.0


def test_nu_is_the_share_of_kernels_in_use():
    assert BoxSimplex(nu=0.25).cap(8) == 0.5
    assert BoxSimplex(nu=0.5).cap(8) == 0.25
    assert BoxSimplex().cap(8) == 0.25
    assert np.count_nonzero(BoxSimplex(nu=0.5).maximizer(np.arange(8.0))) == 4


def test_the_cap_sets_the_least_number_of_kernels():
    assert BoxSimplex(theta=0.3).min_active(10) == 4
    assert BoxSimplex(theta=1.0 / 49.0).min_active(49) == 49
    assert BoxSimplex(theta=1.0).min_active(10) == Simplex().min_active(10) == 1


def test_the_largest_norms_sit_at_the_cap_and_the_rest_share_in_proportion():
    eta = BoxSimplex(theta=0.3).reweight(np.array([1.0, 10.0, 2.0, 20.0, 1.0]))
    np.testing.assert_allclose(eta, [0.1, 0.3, 0.2, 0.3, 0.1], rtol=1e-15)
    assert eta[1] == eta[3] == 0.3


def test_a_share_that_would_pass_the_cap_is_cut_in_turn():
    # 16:4:2:1:1 puts 16/24 > 0.4 at the cap; then 4/8 of 0.6 fits.
    eta = BoxSimplex(theta=0.4).reweight(np.array([16.0, 4.0, 2.0, 1.0, 1.0]))
    np.testing.assert_allclose(eta, [0.4, 0.3, 0.15, 0.075, 0.075], rtol=1e-14)


def test_tied_norms_get_the_same_weight_to_the_last_bit():
    norms = np.array([0.1, 3.0, 3.0, 0.1, 0.1, 3.0, 0.1])
    for theta in (0.2, 0.25, 0.3, 0.32, 1.0 / 3.0, 0.5, 1.0):
        eta = BoxSimplex(theta=theta).reweight(norms)
        assert len(set(eta[norms == 3.0])) == 1
        assert len(set(eta[norms == 0.1])) == 1
        assert eta.sum() == pytest.approx(1.0, abs=1e-15)


def test_too_few_positive_norms_take_the_cap_and_leave_the_rest_to_the_others():
    eta = BoxSimplex(theta=0.3).reweight(np.array([0.0, 5.0, 0.0, 1e-9, 0.0]))
    rest = (1.0 - 2 * 0.3) / 3
    np.testing.assert_array_equal(eta, [rest, 0.3, rest, 0.3, rest])


def test_positive_norms_that_just_fill_the_mass_leave_nothing():
    np.testing.assert_array_equal(
        BoxSimplex(theta=0.25).reweight(np.array([1.0, 0.0, 4.0, 2.0, 0.0, 3.0])),
        [0.25, 0.0, 0.25, 0.25, 0.0, 0.25],
    )


def test_no_norms_at_all_give_the_average():
    np.testing.assert_array_equal(BoxSimplex(theta=0.5).reweight(np.zeros(6)), np.full(6, 1.0 / 6))


def test_tiny_and_huge_norms_share_alike():
    norms = np.array([3.0, 1.0, 2.0, 0.5])
    for factor in (1e-300, 1e-150, 1e150, 1e300):
        np.testing.assert_allclose(
            BoxSimplex(theta=0.4).reweight(factor * norms), BoxSimplex(theta=0.4).reweight(norms), rtol=1e-14
        )


def test_the_maximizer_fills_the_largest_energies():
    eta = BoxSimplex(theta=0.4).maximizer(np.array([1.0, 5.0, 2.0, 4.0]))
    np.testing.assert_allclose(eta, [0.0, 0.4, 0.2, 0.4], rtol=1e-15)


def test_ties_at_the_margin_share_what_is_left():
    eta = BoxSimplex(theta=0.4).maximizer(np.array([2.0, 5.0, 2.0, 4.0, 1.0]))
    np.testing.assert_allclose(eta, [0.1, 0.4, 0.1, 0.4, 0.0], rtol=1e-14)


@pytest.mark.parametrize("k", [3, 7, 10, 49, 98, 103, 161])
def test_a_cap_of_one_over_k_fills_exactly_k(k):
    h = np.arange(300.0)
    eta = BoxSimplex(theta=1.0 / k).maximizer(h)
    assert np.count_nonzero(eta) == k
    assert eta.sum() == pytest.approx(1.0, abs=1e-14)


def test_the_projection_of_far_points_keeps_its_digits():
    z = np.array([1e12, 1e12 + 0.25, 1e12 - 0.25, 0.0, -1e12])
    np.testing.assert_allclose(
        Simplex().project(z), [1 / 3, 1 / 3 + 0.25, 1 / 3 - 0.25, 0.0, 0.0], rtol=1e-12
    )
    np.testing.assert_allclose(BoxSimplex(theta=0.5).project(z), [0.375, 0.5, 0.125, 0.0, 0.0], rtol=1e-12)


def test_projections_are_zero_and_at_the_cap_exactly():
    eta = BoxSimplex(theta=0.3).project(np.array([0.9, 0.2, 0.8, -0.5, 0.25, 0.1]))
    assert set(eta[[0, 2]]) == {0.3}
    assert eta[3] == 0.0
    assert eta.sum() == pytest.approx(1.0, abs=1e-15)


def test_the_linear_bounds_are_those_of_the_set():
    assert BoxSimplex(theta=0.4).linear_bounds(3) == [(0.0, 0.4)] * 3
    assert Simplex().linear_bounds(2) == [(0.0, 1.0)] * 2
