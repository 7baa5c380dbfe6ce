"""Smooth functions at many points, told by few: interpolation and what it may miss."""

import numpy as np
import pytest

from kernelweave.gram.grid import LENGTH, ORDER, Grid

RNG = np.random.default_rng(11)
N = 700


def beside_a_knot_at_zero(near):
    """A panel of which one knot is zero, and a sample so near that products leave the range of double."""
    points = -np.cos((2 * np.arange(ORDER) + 1) * np.pi / (2 * ORDER))
    for point in points:
        ends = np.array([0.0, 2.0]) - (1.0 + point)
        half = 0.5 * (ends[1] - ends[0])
        if (ends[0] + half * (1.0 + points) == 0.0).any():
            return np.concatenate([ends, RNG.uniform(*ends, size=N - 3), [near]])
    raise AssertionError("no panel has a knot at zero")


COLUMNS = {
    "beside a knot": beside_a_knot_at_zero(1e-290),
    "nearer to a knot": beside_a_knot_at_zero(1e-308),
    "nearest to a knot": beside_a_knot_at_zero(1e-312),
    "normal": RNG.normal(size=N),
    "heavy tails": RNG.standard_cauchy(size=N),
    "one far outlier": np.append(RNG.normal(size=N - 1), 1e6),
    "far from zero": 1e5 + RNG.normal(size=N),
    "whole numbers": RNG.integers(-60, 60, size=N).astype(float),
    "two values": RNG.integers(0, 2, size=N).astype(float),
    "constant": np.full(N, 3.5),
    "neighbours in the last digit": 1.0 + np.finfo(float).eps * RNG.integers(0, 200, size=N),
    "tiny": 1e-150 * RNG.normal(size=N),
    "one sample": np.array([2.0]),
}
BENDS = [1e-8, 0.3, 8.0, 1e7, 1e300]


def bells(x, bend, centres):
    """Gaussian bells of longdouble arithmetic, one column per centre."""
    apart = (np.asarray(x, dtype=np.longdouble)[:, None] - np.asarray(centres, dtype=np.longdouble)) * bend
    with np.errstate(over="ignore"):
        return np.exp(-(apart**2) / 2)


@pytest.mark.parametrize("bend", BENDS)
@pytest.mark.parametrize("name", COLUMNS)
def test_bells_are_told_by_the_knots_to_the_last_digits(name, bend):
    x = COLUMNS[name]
    grid = Grid.over(x, bend)
    centres = np.concatenate([x[:40], x[:5] + 0.7 / bend])
    told = grid.spread(bells(grid.knots, bend, centres).astype(float))
    missed = np.abs(told - bells(x, bend, centres)).max()
    assert missed <= grid.miss(bend) + 2**-53 * grid.gain * 8 * ORDER
    assert grid.miss(bend) <= 2**-52
    assert grid.gain < 5.0
    assert grid.n_knots <= np.unique(x).size


@pytest.mark.parametrize("times", [1.5, 2.0, 2.5])
@pytest.mark.parametrize("phase", [0.0, 0.4, 0.9])
def test_what_sharper_bells_lack_is_bounded_and_not_by_much_too_much(times, phase):
    x = COLUMNS["normal"]
    bend = times * 2.0
    grid = Grid.over(x, 2.0)
    centres = np.linspace(-3.0, 3.0, 200) + phase
    told = grid.spread(bells(grid.knots, bend, centres).astype(float))
    missed = float(np.abs(told - bells(x, bend, centres)).max())
    assert missed <= grid.miss(bend) + 1e-13
    assert grid.miss(bend) <= 1e4 * missed + 1e-12


@pytest.mark.parametrize("name", COLUMNS)
def test_gathering_is_the_transpose_of_spreading(name):
    x = COLUMNS[name]
    grid = Grid.over(x, 8.0)
    P = grid.spread(np.eye(grid.n_knots))
    V = RNG.normal(size=(x.size, 3))
    np.testing.assert_allclose(grid.gather(V), P.T @ V, atol=1e-12)
    assert np.abs(P).sum(axis=1).max() <= grid.gain * (1 + 1e-12)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)


def test_polynomials_need_one_panel():
    x = COLUMNS["heavy tails"]
    grid = Grid.over(x, 0.0)
    assert grid.n_knots == ORDER
    assert grid.miss(0.0) == 0.0
    largest = np.abs(x).max()
    for degree in (0, 1, 3, 7):
        told = grid.spread((grid.knots[:, None] / largest) ** degree)[:, 0]
        np.testing.assert_allclose(told, (x / largest) ** degree, atol=1e-13)


def test_a_panel_with_few_values_keeps_them():
    few = np.repeat(np.linspace(0.0, 1.0, ORDER), 5)
    grid = Grid.over(few, 1.0)
    np.testing.assert_array_equal(grid.knots, np.unique(few))
    one_more = np.append(few, 0.123)
    assert Grid.over(one_more, 1.0).n_knots == ORDER
    assert not np.isin(one_more, Grid.over(one_more, 1.0).knots).all()


def test_panels_are_as_long_as_the_last_digit_allows():
    # By the bound for Chebyshev points: 2 (L/4)^r 1.0865 / sqrt(r!), by a sum of logarithms.
    logs = np.log(np.arange(1, ORDER + 1, dtype=np.longdouble)).sum() / 2
    missed = np.log(np.longdouble(2 * 1.0865)) + ORDER * np.log(np.longdouble(LENGTH) / 4) - logs
    assert float(missed) == pytest.approx(-53 * np.log(2.0), rel=1e-9)
