"""Banks as sources of rows: the same matrices as the whole Grams, block by block."""

import numpy as np
import pytest
from scipy import sparse

from kernelweave.bank import KernelBank, PrecomputedBank
from kernelweave.bank.spec import Entry
from kernelweave.kernels import (
    Centering,
    Chain,
    ChiSquared,
    FromFunction,
    Gaussian,
    InverseDistance,
    InverseSquareDistance,
    Laplacian,
    Linear,
    Polynomial,
    UnitDiagonal,
    UnitMean,
    UnitTrace,
    UnitVariance,
)

RNG = np.random.default_rng(3)
X = np.abs(RNG.normal(size=(37, 4)))
WIDE = np.abs(RNG.normal(size=(37, 30))) + 5.0  # enough columns for distances by matrix products
SCALINGS = {
    "none": None,
    "trace": UnitTrace(),
    "mean": UnitMean(),
    "diagonal": UnitDiagonal(),
    "variance": UnitVariance(),
    "centring": Centering(),
    "chain": Chain((UnitDiagonal(), Centering(), UnitTrace())),
    "cheap chain": Chain((UnitDiagonal(), UnitMean())),
}
KERNELS = [
    Linear(),
    Polynomial(degree=3),
    Gaussian(width=1.0),
    Gaussian(),
    Laplacian(),
    InverseDistance(),
    InverseSquareDistance(),
    ChiSquared(),
    FromFunction(lambda X, Z: X @ Z.T + 1.0, name="mine"),
]


def assembled(fitted, step):
    """The matrices put together from blocks of the lower triangle."""
    n = fitted.n_samples
    grams = [np.full((n, n), np.nan) for _ in range(len(fitted))]
    for source in fitted.sources():
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            for m, block in source.block(rows, slice(0, rows.stop)):
                grams[m][rows, : rows.stop] = block
    return [np.tril(K) + np.tril(K, -1).T for K in grams]


@pytest.mark.parametrize("name", SCALINGS)
@pytest.mark.parametrize("data", [X, WIDE], ids=["few columns", "many columns"])
@pytest.mark.parametrize("step", [5, 37])
def test_blocks_of_rows_make_up_the_gram(name, data, step):
    bank = KernelBank(KERNELS, scaling=SCALINGS[name])
    expected = list(bank.fit(data).grams())
    for K, whole in zip(assembled(bank.fit(data), step), expected, strict=True):
        np.testing.assert_allclose(K, whole, rtol=1e-9, atol=1e-12 * np.abs(whole).max())


@pytest.mark.parametrize("which", [None, {2, 4, 8}, {0, 3}, set()])
def test_products_with_some_kernels_leave_the_others_alone(which):
    fitted = KernelBank(KERNELS, scaling=UnitTrace()).fit(X)
    grams, V = list(fitted.grams()), RNG.normal(size=(2, 37))
    out = np.zeros((len(grams), 2, 37))
    for source in fitted.sources():
        for start in range(0, 37, 10):
            source.add_matvecs(slice(start, min(start + 10, 37)), V, out, which)
    for m, (K, product) in enumerate(zip(grams, out, strict=True)):
        expected = V @ K if which is None or m in which else np.zeros((2, 37))
        np.testing.assert_allclose(product, expected, atol=1e-10)


@pytest.mark.parametrize("name", SCALINGS)
def test_the_diagonals_are_those_of_the_gram(name):
    fitted = KernelBank(KERNELS, scaling=SCALINGS[name]).fit(X)
    grams = list(fitted.grams())
    seen = [pair for source in fitted.sources() for pair in source.diagonals()]
    assert [m for m, _ in seen] == list(range(len(KERNELS)))
    for m, diagonal in seen:
        np.testing.assert_allclose(
            diagonal, np.diagonal(grams[m]), rtol=1e-9, atol=1e-12 * np.abs(grams[m]).max()
        )


def test_sparse_rows_work_too():
    table = sparse.random_array((30, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    bank = KernelBank([Gaussian(), Linear(), Polynomial()])
    for K, whole in zip(assembled(bank.fit(table), 7), bank.fit(table).grams(), strict=True):
        np.testing.assert_allclose(K, whole, rtol=1e-9, atol=1e-12)


def test_kernels_of_one_block_are_made_together():
    bank = KernelBank([Gaussian(), Linear(), Entry(Gaussian(), columns=[0]), Entry(Linear(), columns=[0])])
    assert [source.kernels for source in bank.fit(X).sources()] == [(0, 1), (2, 3)]


def test_rows_of_any_order_can_be_asked_for():
    fitted = KernelBank(KERNELS, scaling=UnitDiagonal()).fit(X)
    chosen = np.array([30, 2, 17])
    grams = list(fitted.grams())
    for source in fitted.sources():
        for m, block in source.block(chosen, slice(0, 37)):
            np.testing.assert_allclose(block, grams[m][chosen], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["none", "trace", "centring"])
@pytest.mark.parametrize("layout", ["list", "stacked"])
def test_given_matrices_are_sources_too(name, layout):
    Ks = list(KernelBank(KERNELS[:4]).fit(X).grams())
    given = Ks if layout == "list" else np.stack(Ks, axis=2)
    bank = PrecomputedBank(scaling=SCALINGS[name])
    for K, whole in zip(assembled(bank.fit(given), 8), bank.fit(given).grams(), strict=True):
        np.testing.assert_allclose(K, whole, rtol=1e-12)


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
        source.add_matvecs(block, V, out)
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
        one.add_weighted_sum(rows, columns, weights, out)
    expected = 1.0 + sum(w * K[np.ix_(rows, columns)] for w, K in zip(weights, grams, strict=True))
    np.testing.assert_allclose(out, expected, rtol=1e-12)
