"""Rows of kernels however they are held: stored, computed on demand, from explicit features."""

import numpy as np
import pytest
from tests.multiclass.problems import encloses, halves
from tests.reference.pnorm import pnorm_optimum

from kernelweave import KernelBank, Nystroem, RandomFourier
from kernelweave.kernels import (
    Centering,
    ChiSquared,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    UnitDiagonal,
    UnitMean,
)
from kernelweave.multiclass import PNormProblem
from kernelweave.multiclass.rows import (
    ComputedRows,
    FeatureRows,
    StoredRows,
    build_kernel_rows,
    dense_kernels,
)
from kernelweave.solvers import DualAscent

KERNELS = [Linear(), Polynomial(degree=2), Polynomial(degree=3, gamma=0.1), Gaussian(), Laplacian()]


@pytest.fixture(scope="module")
def shifted(digits):
    return digits[0][:600] + 2.0  # an offset, which float32 has to survive


def bank(scaling=None, kernels=KERNELS):
    return KernelBank.per_view(kernels, views=halves(), scaling=scaling)


@pytest.mark.parametrize("scaling", [None, UnitMean(), UnitDiagonal(), Centering()])
def test_computed_rows_are_the_stored_ones_to_single_precision(shifted, scaling, rng):
    fitted = bank(scaling).fit(shifted)
    stored = StoredRows(dense_kernels(fitted.sources(), len(fitted), fitted.n_samples))
    computed = ComputedRows(fitted, n_threads=2)
    places = np.sort(rng.choice(600, 300, replace=False))
    rows, V = rng.permutation(600), rng.normal(size=(300, 3))
    # Centring subtracts numbers as large as the kernel's own: those are rounded, not what is left of them.
    own = dense_kernels(bank().fit(shifted).sources(), len(fitted), fitted.n_samples) if scaling else stored.K
    size = np.abs(own if isinstance(scaling, Centering) else stored.K).max(axis=(1, 2))[:, None, None]
    np.testing.assert_allclose(
        computed.square_block(places) / size, stored.square_block(places) / size, atol=3e-6
    )
    np.testing.assert_allclose(
        computed.products(rows, places, V) / size, stored.products(rows, places, V) / size, atol=1e-4
    )
    np.testing.assert_allclose(computed.diagonals, stored.diagonals, rtol=1e-12)


@pytest.mark.parametrize("scaling", [None, UnitMean(), UnitDiagonal(), Centering()], ids=repr)
@pytest.mark.parametrize("offset", [0.0, 20.0])
def test_errors_are_what_rounding_really_does(shifted, scaling, offset, rng):
    fitted = bank(scaling).fit(shifted + offset)
    K = dense_kernels(fitted.sources(), len(fitted), 600)
    computed, every = ComputedRows(fitted), np.arange(600)
    entries = computed.products(every, every, np.eye(600))
    assert (np.sqrt(((entries - K) ** 2).mean(axis=(1, 2))) <= computed.entry_errors).all()
    off = np.sqrt(((computed.square_block(every) - K) ** 2).mean(axis=(1, 2)))
    assert (off <= computed.entry_errors + 1e-7 * np.abs(K).max(axis=(1, 2))).all()  # stored in float32
    A = rng.normal(size=(600, 2))
    wrong = np.abs(computed.products(every, every, A) - K @ A).max(axis=(1, 2))
    shared = 4 * computed.unit_roundoff * np.abs(K).max(axis=(1, 2))
    assert (wrong <= 6.0 * (computed.entry_errors + shared) * np.linalg.norm(A)).all()


def test_no_columns_give_zeros(shifted):
    computed = ComputedRows(bank().fit(shifted))
    assert not computed.products(np.arange(5), np.arange(0), np.zeros((0, 3))).any()


def test_memory_decides_how_kernels_are_held(shifted):
    fitted, costly = bank().fit(shifted), bank(None, [ChiSquared()]).fit(shifted)
    assert isinstance(build_kernel_rows(costly, 10), StoredRows)
    assert isinstance(build_kernel_rows(costly, 10, memory_limit=5e6), ComputedRows)
    limited = build_kernel_rows(fitted, 10, memory_limit=2e6)
    assert isinstance(limited, ComputedRows)
    assert limited.max_block**2 * 8 <= 2e6
    assert build_kernel_rows(fitted, 10).max_block == 600
    with pytest.raises(MemoryError, match="raise memory_limit"):
        build_kernel_rows(fitted, 10, memory_limit=1e5)


def test_certificates_from_computed_rows_enclose_the_optimum_of_the_kernels_themselves(shifted, digits):
    X, y = shifted[:60], digits[1][:60] % 3
    fitted = bank(UnitMean()).fit(X)
    optimum = pnorm_optimum(dense_kernels(fitted.sources(), len(fitted), 60), y, 1.0, 1.5)
    problem = PNormProblem(ComputedRows(fitted), y, 3, 1.0 / 60, 1.5, np.ones(60))
    result = DualAscent(tol=1e-3, block=25).solve(problem, np.random.default_rng(0))
    assert encloses(result.certificate, optimum)
    assert result.certificate.relative_gap <= 1e-3


def test_certificates_hold_where_centring_leaves_little_of_what_was_rounded(shifted, digits):
    X, y = shifted[:60] + 60.0, digits[1][:60] % 3
    fitted = bank((Centering(), UnitMean()), [Polynomial(degree=3, gamma=0.1), Gaussian()]).fit(X)
    optimum = pnorm_optimum(dense_kernels(fitted.sources(), len(fitted), 60), y, 1.0, 1.5)
    problem = PNormProblem(ComputedRows(fitted), y, 3, 1.0 / 60, 1.5, np.ones(60))
    result = DualAscent(tol=1e-3, block=25).solve(problem, np.random.default_rng(0))
    assert encloses(result.certificate, optimum)


def test_feature_rows_are_kernels_of_their_features(rng):
    Phi = rng.normal(size=(30, 9))
    rows = FeatureRows(Phi, np.array([0, 4, 9]))
    K = np.array([Phi[:, :4] @ Phi[:, :4].T, Phi[:, 4:] @ Phi[:, 4:].T])
    some, V = np.array([3, 1, 20]), rng.normal(size=(2, 3))
    np.testing.assert_allclose(rows.products(some, np.array([5, 7]), V), K[:, some][:, :, [5, 7]] @ V)
    np.testing.assert_allclose(rows.square_block(some), K[:, some][:, :, some])
    np.testing.assert_allclose(rows.diagonals, np.diagonal(K, axis1=1, axis2=2))


def test_dual_ascent_on_features_solves_the_problem_of_their_kernels(rng):
    Phi, y = rng.normal(size=(50, 9)), rng.integers(0, 3, 50)
    rows = FeatureRows(Phi, np.array([0, 4, 9]))
    optimum = pnorm_optimum(rows.square_block(np.arange(50)), y, 1.0, 1.5)
    problem = PNormProblem(rows, y, 3, 1.0 / 50, 1.5, np.ones(50))
    result = DualAscent(tol=1e-4, block=20, max_passes=500).solve(problem, rng)
    assert encloses(result.certificate, optimum)
    assert result.certificate.relative_gap <= 1e-4


@pytest.mark.parametrize("features", [RandomFourier(4000), Nystroem(600)])
def test_features_reproduce_their_kernels(shifted, features, rng):
    X = shifted
    kernels = [Gaussian(), Linear()] if isinstance(features, RandomFourier) else KERNELS
    fitted = bank(UnitMean(), kernels).fit(X)
    maps = features.fit(fitted, X, rng)
    Phi = maps.transform(X[:50])
    for m, (K, start, stop) in enumerate(
        zip(fitted.grams(), maps.offsets[:-1], maps.offsets[1:], strict=True)
    ):
        part = Phi[:, start:stop]
        tolerance = 0.1 if isinstance(features, RandomFourier) and m % 2 == 0 else 1e-5
        np.testing.assert_allclose(part @ part.T, K[:50, :50], atol=tolerance * np.abs(K).max())


def test_random_features_name_the_kernels_they_cannot_approximate(shifted, rng):
    for kernels in ([Polynomial()], [Laplacian()]):
        with pytest.raises(ValueError, match="use features=Landmarks"):
            RandomFourier().fit(bank(None, kernels).fit(shifted), shifted, rng)
    with pytest.raises(ValueError, match="whole number"):
        RandomFourier(0).fit(bank(None, [Gaussian()]).fit(shifted), shifted, rng)
