"""Parameters that are refused with one sentence, and the Fenchel-Young gap."""

import numpy as np
import pytest

from kernelweave.geometry import (
    BoxSimplex,
    ElasticNetBall,
    GroupBox,
    LpBall,
    Point,
    PowerSimplex,
    RidgeSimplex,
    Simplex,
    Uniform,
    fenchel_young_gap,
)

BAD = [
    (BoxSimplex(theta=0.1), 4, r"theta >= 1/4 = 0\.25, got theta=0\.1"),
    (BoxSimplex(theta=0.0), 4, r"got theta=0\.0"),
    (BoxSimplex(theta=np.nan), 4, r"got theta=nan"),
    (BoxSimplex(theta=0.3333), 3, r"theta >= 1/3 = 0\.333333, got theta=0\.3333;"),
    (BoxSimplex(theta=0.5, nu=0.5), 4, r"got theta=0\.5 and nu=0\.5"),
    (BoxSimplex(nu=0.0), 4, r"0 < nu <= 1, got nu=0\.0"),
    (BoxSimplex(nu=1.5), 4, r"got nu=1\.5"),
    (RidgeSimplex(theta=0.0), 3, r"theta > 0, got theta=0\.0"),
    (RidgeSimplex(theta=-1.0), 3, r"got theta=-1\.0"),
    (RidgeSimplex(theta=np.inf), 3, r"got theta=inf.*Simplex\(\)"),
    (PowerSimplex(theta=0.0), 3, r"got theta=0\.0"),
    (PowerSimplex(p=1.0), 3, r"p > 1, got p=1\.0.*Simplex\(\)"),
    (PowerSimplex(p=0.5), 3, r"got p=0\.5"),
    (PowerSimplex(theta=1e-9, p=100.0), 3, r"theta=1e-09, p=100\.0.*floating point"),
    (LpBall(p=0.5), 3, r"1 <= p <= inf, got p=0\.5"),
    (LpBall(p=np.nan), 3, r"got p=nan"),
    (ElasticNetBall(v=-0.1), 3, r"0 <= v <= 1, got v=-0\.1"),
    (ElasticNetBall(v=1.1), 3, r"got v=1\.1"),
    (GroupBox(theta=0.0), 3, r"theta > 0, got theta=0\.0"),
    (GroupBox(groups=["a", "b"]), 3, r"got 2 labels for 3 kernels"),
    (GroupBox(groups=[]), 3, r"got 0 labels"),
    (Simplex(), 0, r"at least 1 kernel, got 0"),
    (Uniform(), 0, r"at least 1 kernel, got 0"),
    (Point([0.5, 0.5]), 3, r"one weight for each of 3 kernels, got weights of shape \(2,\)"),
    (Point([0.5, -0.1]), 2, r"weights >= 0 that are not all 0, got \[0\.5, -0\.1\]"),
    (Point([0.0, 0.0]), 2, r"weights >= 0 that are not all 0"),
]


@pytest.mark.parametrize(("geometry", "n_kernels", "message"), BAD, ids=lambda v: str(v)[:40])
def test_illegal_parameters_get_one_clear_sentence(geometry, n_kernels, message):
    with pytest.raises(ValueError, match=message) as caught:
        geometry.check(n_kernels)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert text.startswith(type(geometry).__name__)


@pytest.mark.parametrize(
    ("geometry", "n_kernels"),
    [
        (BoxSimplex(theta=0.25), 4),
        (BoxSimplex(theta=1.0 / 49.0), 49),
        (BoxSimplex(nu=1.0), 4),
        (BoxSimplex(theta=5.0), 1),
        (BoxSimplex(), 1),
        (LpBall(p=1), 3),
        (LpBall(p=np.inf), 3),
        (ElasticNetBall(v=0), 3),
        (ElasticNetBall(v=1), 3),
        (GroupBox(groups=["a", "a", "b"], theta=9.0), 3),
        (PowerSimplex(theta=100.0, p=1.001), 3),
    ],
    ids=str,
)
def test_the_ends_of_every_range_are_legal(geometry, n_kernels):
    geometry.check(n_kernels)
    assert np.isfinite(geometry.value(geometry.start(n_kernels)))


def test_the_smallest_legal_theta_is_named():
    with pytest.raises(ValueError, match=r"1/8 = 0\.125"):
        BoxSimplex(theta=0.1).check(8)


def test_parameters_can_be_tuned_in_place():
    geometry = BoxSimplex(theta=0.5).set_params(theta=0.25)
    assert geometry.cap(10) == 0.25
    with pytest.raises(ValueError, match="no parameter 'tau'"):
        geometry.set_params(tau=1.0)


def test_the_fenchel_young_gap_is_value_plus_conjugate_minus_product():
    eta, h = np.array([0.25, 0.75]), np.array([2.0, 1.0])
    assert fenchel_young_gap(Simplex(), eta, h) == pytest.approx(2.0 - 1.25)
    assert fenchel_young_gap(LpBall(2.0), np.array([0.6, 0.8]), np.array([3.0, 4.0])) == pytest.approx(
        0.0, abs=1e-15
    )
    # ridge: 0.3125 / (2 theta) + conjugate - product; at theta = 1 the best answer to h is (1, 0)
    assert fenchel_young_gap(RidgeSimplex(1.0), eta, h) == pytest.approx(0.3125 + 1.5 - 1.25)


def test_a_point_outside_has_an_infinite_gap():
    assert fenchel_young_gap(Simplex(), np.array([0.7, 0.7]), np.ones(2)) == np.inf
