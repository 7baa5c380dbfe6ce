"""What banks compute without forming matrices is what their matrices say, of training and of new samples."""

import numpy as np
import pytest
from scipy import sparse

from kernelweave import Views
from kernelweave.bank import Entry, KernelBank, PrecomputedBank, cross
from kernelweave.bank import protocol as protocol_module
from kernelweave.bank.scaled import RescaledKernels
from kernelweave.gram import StreamedGrams
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
N, NEW = 37, 9
TABLES = {
    "few columns": np.abs(RNG.normal(size=(N + NEW, 4))),
    "many columns": np.abs(RNG.normal(size=(N + NEW, 30))) + 5.0,
}
SCALINGS = {
    "none": None,
    "trace": UnitTrace(),
    "mean": UnitMean(),
    "diagonal": UnitDiagonal(),
    "variance": UnitVariance(),
    "centring": Centering(),
    "chain": Chain((UnitDiagonal(), Centering(), UnitTrace())),
    "other chain": Chain((Centering(), UnitDiagonal())),
}
KERNELS = [
    Linear(),
    Polynomial(degree=3, gamma=0.1),
    Gaussian(width=1.0),
    Gaussian(),
    Laplacian(),
    InverseDistance(),
    InverseSquareDistance(),
    ChiSquared(),
    FromFunction(lambda X, Z: X @ Z.T + 1.0, name="mine"),
]
M = len(KERNELS)


def expected_matrices(kernels, scaling, train, new):
    """Every kernel alone: training matrix and new rows, scaled as matrices."""
    grams, rows = [], []
    for kernel in kernels:
        kernel = kernel.resolve(train)
        K, cross_K = kernel(train), kernel(new, train)
        if scaling is not None:
            fitted = scaling.fit(K)
            K, cross_K = fitted.train(K), fitted.rows(cross_K, kernel.diagonal(new))
        grams.append(K)
        rows.append(cross_K)
    return np.array(grams), np.array(rows)


@pytest.fixture(params=[(name, table) for name in SCALINGS for table in TABLES], ids=str)
def case(request):
    name, table = request.param
    train, new = TABLES[table][:N], TABLES[table][N:]
    fitted = KernelBank(KERNELS, scaling=SCALINGS[name]).fit(train)
    return fitted, new, *expected_matrices(KERNELS, SCALINGS[name], train, new)


def close(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11 * np.abs(theirs).max())


def test_gram_matrices_and_new_rows_are_those_of_the_kernels_alone(case):
    fitted, new, grams, rows = case
    close(fitted.grams(), grams)
    found = dict(fitted.cross(new))
    close([found[m] for m in range(M)], rows)


@pytest.mark.parametrize("step", [5, 36])
def test_blocks_of_rows_make_up_the_gram(case, step):
    fitted, _, grams, _ = case
    found = np.full((M, N, N), np.nan)
    for source in fitted.sources():
        for start in range(0, N, step):
            rows = slice(start, min(start + step, N))
            for m, block in source.block(rows, slice(0, rows.stop)):
                found[m, rows, : rows.stop] = block
                found[m, : rows.stop, rows] = block.T
    close(found, grams)


def test_streamed_passes_over_a_bank_are_those_over_its_matrices(case):
    fitted, _, grams, _ = case
    stack, V, eta = StreamedGrams(fitted.sources(), M, N, n_threads=2), RNG.normal(size=(N, 2)), RNG.random(M)
    V[::3] = 0.0
    close(stack.matvecs(V), grams @ V)
    close([stack.combine(eta)], [np.tensordot(eta, grams, 1)])
    close([stack.matvec(eta, V)], [np.tensordot(eta, grams, 1) @ V])
    sizes = np.array([0.5 * np.vdot(np.abs(V), np.abs(K) @ np.abs(V)) for K in grams])
    energies = np.array([0.5 * np.vdot(V, K @ V) for K in grams])
    assert (np.abs(stack.energies(V) - energies) <= 1e-11 * sizes).all()
    diagonals = np.diagonal(grams, axis1=1, axis2=2)
    np.testing.assert_allclose(stack.diagonals, diagonals, rtol=1e-9, atol=1e-12 * np.abs(grams).max())


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("columns", [np.arange(N), np.array([30, 2, 17, 5])], ids=["all", "some"])
def test_products_of_new_samples_are_those_of_their_rows(case, balanced, columns):
    fitted, new, _, rows = case
    which, eta = np.array([8, 2, 0, 3, 7]), RNG.random(M)
    eta[[1, 4, 5]] = 0.0
    coef, own = RNG.normal(size=(columns.size, 2)), RNG.normal(size=(which.size, columns.size, 2))
    if balanced:  # centring needs no pass over the training samples
        coef, own = coef - coef.mean(axis=0), own - own.mean(axis=1, keepdims=True)
    for V in (coef, own):
        found = fitted.products(new, columns, V, which, n_threads=2)
        assert found.shape == (which.size, NEW, 2)
        close(found, rows[which][:, :, columns] @ V)
    total = np.tensordot(eta, rows, 1)[:, columns] @ coef
    close([fitted.weighted_products(new, columns, coef, eta, n_threads=2)], [total])
    np.testing.assert_array_equal(fitted.weighted_products(new, columns, coef, 0.0 * eta), np.zeros((NEW, 2)))


def test_coefficients_that_sum_to_zero_save_the_pass_that_centring_needs():
    seen = []

    def counted(X, Z):
        seen.append((len(X), len(Z)))
        return X @ Z.T

    train, new = TABLES["few columns"][:N], TABLES["few columns"][N:]
    fitted = KernelBank([FromFunction(counted)], scaling=(Centering(), UnitTrace())).fit(train)
    fitted.sources()
    columns, coef = np.array([1, 2]), np.array([[1.0], [-1.0]])
    for V, expected in ((coef, [(NEW, 2)]), (coef + 1.0, [(NEW, 2), (NEW, N)])):
        seen.clear()
        fitted.products(new, columns, V, np.array([0]))
        assert sorted(seen) == expected


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2)], ids=repr)
def test_new_samples_are_scaled_by_their_own_lengths_where_those_of_training_samples_agree(kernel):
    train = 4.0 * np.vstack([np.eye(3), -np.eye(3)])
    new, columns, coef = RNG.normal(size=(5, 3)), np.arange(6), RNG.normal(size=(6, 1))
    fitted = KernelBank([kernel], scaling=UnitDiagonal()).fit(train)
    K = kernel(new, train) / np.sqrt(np.outer(kernel.diagonal(new), kernel.diagonal(train)))
    close([K for _, K in fitted.cross(new)], [K])
    close(fitted.products(new, columns, coef, np.array([0])), [K @ coef])
    close([fitted.weighted_products(new, columns, coef, np.ones(1))], [K @ coef])


def test_products_need_only_the_views_of_the_kernels_asked_for():
    a, b = RNG.normal(size=(20, 3)), RNG.normal(size=(20, 2))
    fitted = KernelBank.per_view(Linear(), scaling=None).fit(Views({"a": a, "b": b}))
    new, coef, columns = RNG.normal(size=(4, 2)), RNG.normal(size=(20, 1)), np.arange(20)
    close(fitted.products(Views({"b": new}), columns, coef, np.array([1])), [new @ b.T @ coef])
    found = fitted.weighted_products(Views({"b": new}), columns, coef, np.array([0.0, 2.0]))
    close([found], [2.0 * new @ b.T @ coef])


def test_sparse_tables_have_the_products_of_dense_ones():
    table = sparse.random_array((N + NEW, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    bank, columns = KernelBank([Gaussian(), Linear(), Polynomial()], scaling=UnitMean()), np.array([3, 5, 30])
    light, dense = bank.fit(table[:N]), bank.fit(table[:N].toarray())
    coef = RNG.normal(size=(3, 2))
    for new in (table[N:], table[N:].toarray()):
        found = light.products(new, columns, coef, np.arange(3))
        close(found, dense.products(table[N:].toarray(), columns, coef, np.arange(3)))


FITTED = {
    "table": (
        lambda X: KernelBank([Gaussian(), Linear(), Polynomial()], scaling=UnitMean()).fit(X),
        lambda Z, _: Z,
    ),
    "precomputed": (
        lambda X: PrecomputedBank(scaling=Centering()).fit(
            [X @ X.T, (X @ X.T + 1.0) ** 2, np.exp(X @ X.T / 50)]
        ),
        lambda Z, X: [Z @ X.T, (Z @ X.T + 1.0) ** 2, np.exp(Z @ X.T / 50)],
    ),
    "rescaled": (
        lambda X: RescaledKernels(
            KernelBank([Gaussian(), Linear(), Polynomial()]).fit(X), (Centering(), UnitMean())
        ),
        lambda Z, _: Z,
    ),
}


@pytest.fixture(params=FITTED)
def bank(request):
    """Fitted kernels, new samples as they read them, and what these are against the training samples."""
    make, read = FITTED[request.param]
    X = TABLES["few columns"]
    fitted = make(X[:N])
    new = read(X[N:], X[:N])
    rows = dict(fitted.cross(new))
    return fitted, new, np.array([rows[m] for m in range(3)])


@pytest.fixture(params=[1, 100, 8_000_000])
def slice_entries(request, monkeypatch):
    """Take new samples a few at a time, or all at once."""
    monkeypatch.setattr(protocol_module, "ENTRIES_PER_SLICE", request.param)
    monkeypatch.setattr(cross, "RESULTS_PER_SLICE", request.param)


COLUMNS = np.array([20, 3, 11])


def test_every_bank_has_products_of_new_samples(bank, slice_entries):
    fitted, new, rows = bank
    which, coef, own = np.array([2, 0]), RNG.normal(size=(3, 2)), RNG.normal(size=(2, 3, 2))
    for V in (coef, own):
        close(fitted.products(new, COLUMNS, V, which), rows[which][:, :, COLUMNS] @ V)
    eta = np.array([0.5, 0.0, 2.0])
    expected = np.tensordot(eta, rows, 1)[:, COLUMNS] @ coef
    close([fitted.weighted_products(new, COLUMNS, coef, eta)], [expected])


def test_scores_are_weighted_sums_of_kernels_over_the_support(bank, slice_entries):
    fitted, new, rows = bank
    coef, eta = RNG.normal(size=(2, 3)), RNG.random((2, 3))
    eta[:, 1] = 0.0  # a kernel without weight is not computed
    for weights in (eta[:1], eta):
        expected = np.einsum("cm,mij,cj->ic", np.broadcast_to(weights, (2, 3)), rows[:, :, COLUMNS], coef)
        close([cross.scores(fitted, new, weights, coef, COLUMNS)], [expected])


def test_layered_scores_have_coefficients_of_their_own_for_every_kernel(bank, slice_entries):
    fitted, new, rows = bank
    coef, eta = RNG.normal(size=(3, 2, 3)), RNG.random((2, 3))
    for weights in (eta[:1], eta):
        expected = np.einsum("cm,mij,mcj->ic", np.broadcast_to(weights, (2, 3)), rows[:, :, COLUMNS], coef)
        close([cross.layered_scores(fitted, new, weights, coef, COLUMNS)], [expected])


def test_contributions_are_what_every_kernel_adds(bank, slice_entries):
    fitted, new, rows = bank
    coef = RNG.normal(size=(2, 3, 3))
    coef[:, 1] = 0.0
    found = cross.contributions(fitted, new, coef, COLUMNS)
    close([found], [np.einsum("mij,cmj->icm", rows[:, :, COLUMNS], coef)])
    assert not found[:, :, 1].any()
    assert not cross.contributions(fitted, new, 0.0 * coef, COLUMNS).any()


def test_the_combined_kernel_is_the_weighted_sum(bank, slice_entries):
    fitted, new, rows = bank
    eta = np.array([0.5, 0.0, 2.0])
    close([cross.combined(fitted, new, eta)], [np.tensordot(eta, rows, 1)])


def test_the_combined_kernel_between_new_samples_is_that_of_the_parts():
    X = TABLES["few columns"]
    fitted = KernelBank([Gaussian(), Entry(Linear(), columns=[0, 1])]).fit(X[:N])
    eta = np.array([0.5, 2.0])
    expected = 0.5 * Gaussian().resolve(X[:N])(X[N:], X[:4]) + 2.0 * X[N:, :2] @ X[:4, :2].T
    close([cross.combined(fitted, X[N:], eta, X[:4])], [expected])
