"""Kernels of one variable by their knots, against every pair of samples in longdouble."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from kernelweave import KernelBank
from kernelweave.bank import Entry
from kernelweave.gram.grid import ORDER, Grid
from kernelweave.gram.knots import Knots
from kernelweave.kernels import (
    Centering,
    Gaussian,
    InverseSquareDistance,
    Laplacian,
    Linear,
    Polynomial,
    UnitDiagonal,
    UnitMean,
    UnitTrace,
)

RNG = np.random.default_rng(12)
N = 500
COLUMNS = {
    "normal": RNG.normal(size=N),
    "heavy tails": np.append(RNG.normal(size=N - 20), RNG.standard_cauchy(size=20)),
    "one far outlier": np.append(RNG.normal(size=N - 1), 1e6),
    "far from zero": 1e4 + RNG.normal(size=N),
    "whole numbers": RNG.integers(0, 90, size=N).astype(float),
    "two values": RNG.integers(0, 2, size=N).astype(float),
    "constant": np.full(N, 3.5),
    "zero": np.zeros(N),
}
WIDTHS = [0.5, 1.0, 8.0, 1e4]
KERNELS = [*[Gaussian(width=w) for w in WIDTHS], *[Polynomial(degree=d) for d in (1, 2, 3)], Linear()]


def plain(x):
    """The kernels written out, in longdouble."""
    x = x.astype(np.longdouble)
    apart, product = x[:, None] - x, x[:, None] * x
    bells = [np.exp(-(apart**2) / (2 * np.longdouble(w) ** 2)) for w in WIDTHS]
    return [*bells, *[(product + 1) ** d for d in (1, 2, 3)], product]


@pytest.mark.parametrize("scaling", [None, UnitTrace()])
@pytest.mark.parametrize("name", COLUMNS)
def test_products_are_those_of_all_pairs_to_what_is_said(name, scaling):
    x = COLUMNS[name]
    fitted = KernelBank(KERNELS, scaling=scaling).fit(x[:, None])
    (source,) = fitted.sources()
    knots = source.knots()
    V = RNG.normal(size=(N, 3)) * np.array([1.0, 100.0, 1e-3])
    V -= V.mean(axis=0)
    images = knots.images(V)
    energies = knots.energies(V, images)
    for m, K in enumerate(plain(x)):
        trace = np.trace(K)
        K = K / trace if scaling is not None and trace > 0 else K
        size = float(np.diagonal(K).max())
        (error,) = knots.errors(np.full(len(KERNELS), size))[[m]]
        assert error <= 1e-11 * size
        missed = np.abs(knots.grid.spread(images[m]) - K @ V)
        assert (missed <= error * np.abs(V).sum(axis=0)).all()
        energy = 0.5 * np.sum(V * (K @ V))
        assert abs(energies[m] - energy) <= 0.5 * error * np.sum(np.abs(V).sum(axis=0) ** 2)


def test_what_panels_that_are_too_long_miss_is_part_of_the_error():
    points = 3.0 * COLUMNS["normal"]
    fitted = KernelBank([Gaussian(width=1.0)]).fit(points[:, None])
    fitted.sources()  # which learns what is open in the kernels
    bend = fitted.bend(0, ORDER)
    grid = Grid.over(points, bend / 2.0)  # laid for a bell twice as wide
    at_knots = KernelBank([Gaussian(width=1.0)]).fit(grid.knots[:, None]).sources()[0]
    knots = Knots(grid, at_knots, np.array([bend]))
    (error,), v = knots.errors(np.ones(1)), RNG.normal(size=(N, 1))
    missed = np.abs(grid.spread(knots.images(v)[0]) - next(iter(fitted.grams())) @ v).max()
    rounded = knots.errors(np.zeros(1)) + replace(knots, bends=np.zeros(1)).errors(np.ones(1))
    assert missed <= error * np.abs(v).sum()
    assert missed > 10.0 * rounded[0] * np.abs(v).sum()


@pytest.mark.parametrize(
    ("bank", "table"),
    [
        (KernelBank([Gaussian(width=1.0)]), RNG.normal(size=(N, 2))),
        (KernelBank([Gaussian(width=1.0)]), sparse.random_array((N, 1), density=0.5, rng=0).tocsr()),
        (KernelBank([Gaussian(width=1.0), Laplacian()]), RNG.normal(size=(N, 1))),
        (KernelBank([InverseSquareDistance()]), RNG.normal(size=(N, 1))),
        (KernelBank([Gaussian(width=1.0)], scaling=Centering()), RNG.normal(size=(N, 1))),
        (KernelBank([Polynomial(degree=2)], scaling=UnitDiagonal()), RNG.normal(size=(N, 1))),
        (KernelBank([Polynomial(degree=40)]), RNG.random(size=(N, 1))),
        (KernelBank([Gaussian(width=0.01)]), RNG.normal(size=(N, 1))),
        (KernelBank([Gaussian(width=1.0)]), RNG.normal(size=(50, 1))),
        (KernelBank([Gaussian(width=1.0)]), 1e160 * RNG.normal(size=(N, 1))),
    ],
    ids=[
        "two variables", "sparse", "not smooth", "not known", "centred", "scaled by sample", "high degree",
        "narrow", "few samples", "overflow",
    ],
)  # fmt: skip
def test_kernels_that_knots_cannot_tell_have_none(bank, table):
    assert bank.fit(table).sources()[0].knots() is None


def test_kernels_scaled_by_what_they_learn_have_knots():
    x = RNG.normal(size=(N, 1))
    bank = KernelBank([Gaussian(), Gaussian(scale=0.25)], scaling=UnitMean())
    fitted = bank.fit(x)
    knots, v = fitted.sources()[0].knots(), RNG.normal(size=(N, 1))
    for image, K in zip(knots.images(v), fitted.grams(), strict=True):
        np.testing.assert_allclose(knots.grid.spread(image), K @ v, atol=1e-10)


@pytest.mark.parametrize("kernel", [*KERNELS, Laplacian(), Polynomial(degree=2, gamma=0.3, offset=0.0)])
@pytest.mark.parametrize("order", [2, 5, 12])
def test_no_kernel_bends_more_than_it_says(kernel, order):
    x = np.linspace(-2.0, 2.0, 9)
    kernel = kernel.resolve(x[:, None])
    bend = kernel.bend(order)
    if not np.isfinite(bend):
        return
    # Divided differences are derivatives somewhere between, over the factorial.
    step = 0.05
    z = np.linspace(-2.0, 2.0, 81)
    points = z[:, None] + step * np.arange(order + 1)
    table = kernel(points.reshape(-1, 1), x[:, None]).reshape(*points.shape, -1).astype(np.longdouble)
    derivatives = np.abs(np.diff(table, n=order, axis=1)).max() / step**order
    size = float(kernel.diagonal(points.reshape(-1, 1)).max())
    bound = 1.0865 * np.sqrt(np.prod(np.arange(1.0, order + 1))) * bend**order * size
    assert derivatives <= bound + 2.0**order * 1e-15 * size / step**order


def test_sources_under_other_numbers_say_the_same():
    X = RNG.normal(size=(40, 3))
    kernels = [Gaussian(width=1.0), Laplacian(), Gaussian(width=3.0), Polynomial(degree=2)]
    bank = KernelBank(
        [Entry(kernel, columns=[j]) for j in range(2) for kernel in kernels], scaling=UnitTrace()
    )
    fitted = bank.fit(X)
    grams = list(fitted.grams())
    places = {6: 0, 4: 1, 5: 3}
    source = fitted.sources()[1].renumbered(places)
    assert sorted(source.kernels) == [0, 1, 3]
    back = {place: m for m, place in places.items()}
    rows = slice(10, 30)
    for place, K in source.block(rows, slice(0, 30)):
        np.testing.assert_allclose(K, grams[back[place]][rows, :30], rtol=1e-12)
    for place, diagonal in source.diagonals():
        np.testing.assert_allclose(diagonal, np.diagonal(grams[back[place]]))
    V, out = RNG.normal(size=(2, 40)), np.zeros((4, 2, 40))
    for block in (slice(0, 25), slice(25, 40)):
        source.add_images(block, V, out)
    for place, m in back.items():
        np.testing.assert_allclose(out[place], V @ grams[m], atol=1e-13)
    assert not out[2].any()


@pytest.mark.parametrize("smooth", [True, False])
def test_weighted_sums_of_blocks(smooth):
    X = np.abs(RNG.normal(size=(40, 2)))
    kernels = [Gaussian(width=1.0), Polynomial(degree=2), Gaussian(width=0.2), Linear()]
    fitted = KernelBank(kernels, scaling=None if smooth else Centering()).fit(X)
    grams, (source, *others) = list(fitted.grams()), fitted.sources()
    weights = np.array([0.3, 2.0, 0.0, 1.5])
    rows, columns = np.array([3, 7, 30]), np.array([0, 1, 39, 7])
    out = np.ones((3, 4))
    for one in (source, *others):
        one.add_sum(rows, columns, weights, out)
    expected = 1.0 + sum(w * K[np.ix_(rows, columns)] for w, K in zip(weights, grams, strict=True))
    np.testing.assert_allclose(out, expected, rtol=1e-12)
