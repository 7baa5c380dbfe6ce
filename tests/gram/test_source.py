"""A source says of its kernels what their scaled matrices say, though none of these exists."""

import numpy as np
import pytest
from scipy import sparse

from kernelweave.gram.source import KernelSource, NewRows, matrix_sources
from kernelweave.kernels import (
    Centering,
    Chain,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    UnitDiagonal,
)
from kernelweave.kernels.fitted_scaling import ScaledForm
from kernelweave.kernels.groups import AnyGroup, CompiledGroup, GivenGroup, LinearGroup, grouped

RNG = np.random.default_rng(2)
N, M, NEW = 23, 7, 6
HERE = np.sort(RNG.choice(N, 17, replace=False))  # the samples that have the features
PLACES = np.array([5, 0, 2, 3])  # of the kernels in the stack
F, G = RNG.uniform(0.5, 2.0, size=N), RNG.uniform(0.5, 2.0, size=NEW)
CHAIN = Chain((UnitDiagonal(), Centering(), UnitDiagonal()))

X = RNG.normal(1.0, 1.0, size=(N + NEW, 3))
GROUPS = {
    "distances": (
        CompiledGroup,
        [Gaussian(width=w) for w in (0.5, 1.0)] + [Laplacian(gamma=0.4), Gaussian(width=3.0)],
        X,
    ),
    "inner products": (CompiledGroup, [Polynomial(degree=d, gamma=0.5) for d in (1, 2, 3, 2)], X),
    "linear": (LinearGroup, [Linear()] * 4, X),
    "sparse": (AnyGroup, [Gaussian(width=w) for w in (0.5, 1.0, 2.0, 4.0)], sparse.csr_array(X * (X > 0.5))),
    "given": (GivenGroup, [Precomputed()], X @ X.T),
}


def chained(K, new):
    """K and new rows after length one, centring and length one, with k(x, x) of the new samples."""
    rows, diagonal = new
    lengths, own = np.sqrt(np.diagonal(K)), np.sqrt(diagonal)
    K, rows = K / np.outer(lengths, lengths), rows / np.outer(own, lengths)
    P = np.eye(len(K)) - 1.0 / len(K)
    lengths = np.sqrt(np.diagonal(P @ K @ P))
    own = np.sqrt(1.0 - 2.0 * rows.mean(axis=1) + K.mean())
    return (P @ K @ P) / np.outer(lengths, lengths), ((rows - K.mean(axis=0)) @ P) / np.outer(own, lengths)


class Case:
    """A source, and the matrices of its kernels within the stack."""

    def __init__(self, name, everywhere):
        kind, kernels, table = GROUPS[name]
        self.samples = np.arange(N) if everywhere else HERE
        pairwise = kernels[0].pairwise
        train = table[np.ix_(self.samples, self.samples)] if pairwise else table[self.samples]
        new = table[N:][:, self.samples] if pairwise else table[N:]
        [(_, group)] = grouped(kernels, train)
        assert type(group) is kind
        rows, new_rows, n = group.training_rows(train), group.rows(new), len(self.samples)
        plain, plain_new = ScaledForm.plain(n), ScaledForm.plain(NEW)
        factors = F[self.samples]
        training = [plain.times(factors), plain, plain.times(0.7)]
        fresh = [plain_new.times(G), plain_new, plain_new.times(0.7)]
        if not pairwise:
            diagonals = [kernel.diagonal(new) for kernel in kernels]
            fitted = CHAIN.fit(kernels[3](train))
            made = fitted.forms(n, NEW, lambda: diagonals[3], lambda V: kernels[3](new, train) @ V)
            training.append(made[1])
            fresh.append(made[0])
        training, fresh = training[: len(kernels)], fresh[: len(kernels)]
        self.places = PLACES[: len(kernels)]
        samples = None if everywhere else HERE
        self.source = KernelSource(self.places, group, rows, tuple(training), N, samples)
        self.new = NewRows(new_rows, tuple(fresh))
        # The same by matrices.
        self.matrices, self.cross = np.zeros((M, N, N)), np.zeros((M, NEW, n))
        for a, kernel in enumerate(kernels):
            K, rows = kernel(train), kernel(new, train)
            if a == 3:
                K, rows = chained(K, (rows, diagonals[3]))
            else:
                f, g = ((factors, G), (np.ones(n), np.ones(NEW)), (np.full(n, 0.7), np.full(NEW, 0.7)))[a]
                K, rows = np.outer(f, f) * K, np.outer(g, f) * rows
            self.matrices[PLACES[a]][np.ix_(self.samples, self.samples)] = K
            self.cross[PLACES[a]] = rows


@pytest.fixture(params=[(name, everywhere) for name in GROUPS for everywhere in (True, False)], ids=str)
def case(request):
    return Case(*request.param)


def close(found, expected):
    np.testing.assert_allclose(
        found, expected, rtol=1e-10, atol=1e-12 * (1.0 + np.abs(expected).max(initial=0.0))
    )


SPANS = {
    "all": slice(0, N),
    "some": slice(4, 11),
    "none": slice(3, 3),
    "chosen": np.array([20, 3, 4, 11]),
    "all, upset": RNG.permutation(N),
}


@pytest.mark.parametrize("columns", SPANS)
def test_blocks_are_parts_of_the_matrices(case, columns):
    j = SPANS[columns]
    for i in SPANS.values():
        found = dict(case.source.block(i, j))
        assert sorted(found) == sorted(case.places)
        for m, K in found.items():
            close(K, case.matrices[m][i][:, j])


def test_blocks_of_some_kernels_leave_the_others_alone(case):
    every, wanted = slice(0, N), [int(case.places[-1]), 6]
    [(m, K)] = case.source.block(every, every, wanted)
    assert m == wanted[0]
    close(K, case.matrices[m])
    assert list(case.source.block(every, every, [6])) == []


def test_a_block_of_all_samples_is_exactly_symmetric(case):
    for _, K in case.source.block(slice(0, N), slice(0, N)):
        np.testing.assert_array_equal(K, K.T)


def test_diagonals_are_those_of_the_matrices(case):
    found = dict(case.source.diagonals())
    assert sorted(found) == sorted(case.places)
    for m, diagonal in found.items():
        close(diagonal, np.diagonal(case.matrices[m]))


COLUMNS = {
    "all": np.arange(N),
    "few": np.array([1, 2, 9, 20]),
    "upset": np.array([9, 2, 20]),
    "none": np.arange(0),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_products_are_added_to_those_of_the_other_sources(case, name, n_threads):
    columns, eta = COLUMNS[name], RNG.random(M)
    coef, own = RNG.normal(size=(columns.size, 2)), RNG.normal(size=(M, columns.size, 2))
    mine = np.isin(np.arange(M), case.places)[:, None, None]
    for V in (coef, own):  # one matrix serves all kernels, or each has its own
        out = np.ones((M, N, 2))
        case.source.add_products(columns, V, out, n_threads)
        close(out, 1.0 + mine * (case.matrices[:, :, columns] @ V))
    out = np.ones((N, 2))
    case.source.add_products(columns, coef, out, n_threads, eta)
    close(out, 1.0 + np.tensordot(eta, case.matrices, 1)[:, columns] @ coef)


@pytest.mark.parametrize("name", COLUMNS)
def test_energies_are_half_the_traces(case, name):
    columns = COLUMNS[name]
    coef = RNG.normal(size=(columns.size, 3))
    expected = [
        0.5 * np.trace(coef.T @ K[np.ix_(columns, columns)] @ coef) for K in case.matrices[case.places]
    ]
    close(case.source.energies(columns, coef, 2), np.array(expected))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_weighted_blocks_are_added_to_those_of_the_other_sources(case, n_threads):
    rows, columns, eta = np.array([1, 2, 9, 20]), np.array([0, 9, 11]), RNG.random(M)
    eta[case.places[0]] = 0.0
    K = np.tensordot(eta, case.matrices, 1)
    for j in (rows, columns):
        out = np.ones((rows.size, j.size))
        case.source.add_weighted_block(rows, j, eta, out, n_threads)
        close(out, 1.0 + K[np.ix_(rows, j)])


def test_a_source_of_some_samples_has_the_matrices_between_them(case):
    rows = np.array([0, 2, 3, 8, 9, 15, 22])
    part = case.source.at(rows)
    few, every = case.matrices[:, rows][:, :, rows], slice(0, rows.size)
    assert part.n_samples == rows.size
    for m, K in part.block(every, every):
        close(K, few[m])
    for m, diagonal in part.diagonals():
        close(diagonal, np.diagonal(few[m]))
    out, V = np.zeros((M, rows.size, 2)), RNG.normal(size=(rows.size, 2))
    part.add_products(np.arange(rows.size), V, out, 1)
    close(out, few @ V)
    out = np.zeros((rows.size, 2))
    part.at(np.array([1, 4])).add_products(np.arange(2), V[:2], out[:2], 1, np.ones(M))  # of a part, a part
    close(out[:2], few.sum(axis=0)[np.ix_([1, 4], [1, 4])] @ V[:2])


def test_a_source_of_samples_that_have_no_feature_is_empty():
    case = Case("distances", False)
    rows = np.setdiff1d(np.arange(N), HERE)
    part, out = case.source.at(rows), np.zeros((M, rows.size, 1))
    part.add_products(np.arange(rows.size), np.ones((rows.size, 1)), out, 1)
    assert not out.any()
    assert not part.energies(np.arange(rows.size), np.ones((rows.size, 1)), 1).any()
    for _, K in part.block(slice(0, rows.size), slice(0, rows.size)):
        np.testing.assert_array_equal(K, np.zeros((rows.size, rows.size)))


def test_a_source_of_some_kernels_numbers_them_as_they_were_asked_for(case):
    which = np.array([6, case.places[-1], 1, case.places[0]])[: 2 + len(case.places)]
    part = case.source.renumbered_subset(which)
    found = dict(part.block(slice(0, N), slice(0, N)))
    assert sorted(found) == sorted({1, 3} if len(case.places) > 1 else {1})
    for m, K in found.items():
        close(K, case.matrices[which[m]])
    columns, V = np.arange(N), RNG.normal(size=(N, 1))
    for m, energy in zip(part.kernels, part.energies(columns, V, 1), strict=True):
        close(energy, 0.5 * np.trace(V.T @ case.matrices[which[m]] @ V))
    assert case.source.renumbered_subset(np.array([6, 1])) is None


def test_kernels_are_weighted_sample_by_sample(case):
    local = RNG.uniform(0.1, 2.0, size=(M, N))
    weighted = case.source.weighted(local)
    expected = local[:, :, None] * case.matrices * local[:, None]
    for m, K in weighted.block(slice(0, N), slice(0, N)):
        close(K, expected[m])
    out, V = np.zeros((M, N, 2)), RNG.normal(size=(N, 2))
    weighted.add_products(np.arange(N), V, out, 1)
    close(out, expected @ V)
    energies = [0.5 * np.trace(V.T @ K @ V) for K in expected[case.places]]
    close(weighted.energies(np.arange(N), V, 1), np.array(energies))


@pytest.mark.parametrize("columns", [np.arange(17), np.array([16, 2, 3])], ids=["all", "some"])
def test_new_samples_meet_the_samples_that_have_the_features(case, columns):
    found = dict(case.source.cross(case.new, columns))
    assert sorted(found) == sorted(case.places)
    for m, K in found.items():
        close(K, case.cross[m][:, columns])
    first = int(case.places[0])
    assert [m for m, _ in case.source.cross(case.new, columns, [first, 6])] == [first]
    coef, eta = RNG.normal(size=(columns.size, 2)), RNG.random(M)
    close(
        case.source.cross_products(case.new, columns, coef, 2), case.cross[case.places][:, :, columns] @ coef
    )
    own = RNG.normal(size=(len(case.places), columns.size, 2))
    close(case.source.cross_products(case.new, columns, own, 1), case.cross[case.places][:, :, columns] @ own)
    expected = np.tensordot(eta, case.cross, 1)[:, columns] @ coef
    close(case.source.cross_products(case.new, columns, coef, 1, eta), expected)


@pytest.mark.parametrize("weights", [None, np.array([2.0])], ids=["each", "weighted"])
def test_new_samples_have_factors_of_their_own_where_those_of_training_samples_agree(weights):
    [(_, group)] = grouped([Polynomial(degree=2)], X[:N])
    training, new = ScaledForm.plain(N).times(0.5), ScaledForm.plain(NEW).times(G)
    source = KernelSource(np.array([0]), group, group.training_rows(X[:N]), (training,), N)
    rows = NewRows(group.rows(X[N:]), (new,))
    coef = RNG.normal(size=(N, 2))
    expected = 0.5 * G[:, None] * (Polynomial(degree=2)(X[N:], X[:N]) @ coef)
    found = source.cross_products(rows, np.arange(N), coef, 1, weights)
    close(found, expected[None] if weights is None else 2.0 * expected)


def test_precision_is_that_of_the_group():
    case = Case("distances", False)
    single = case.source.in_dtype("float32")
    assert single.rows.dtype == np.float32
    columns, V = np.arange(N), RNG.normal(size=(N, 2))
    out = np.zeros((M, N, 2))
    single.add_products(columns, V, out, 1)
    np.testing.assert_allclose(out, case.matrices @ V, atol=2e-5)
    assert np.abs(out - case.matrices @ V).max() > 1e-12
    given = Case("given", False).source
    assert given.in_dtype("float32").rows is given.rows


def test_matrices_that_exist_are_sources_one_each():
    matrices = [A @ A.T for A in RNG.normal(size=(3, N, 4))]
    forms = [ScaledForm.plain(N).times(F), ScaledForm.plain(N), ScaledForm.plain(N).times(2.0)]
    sources = matrix_sources(matrices, forms)
    assert [source.kernels.tolist() for source in sources] == [[0], [1], [2]]
    expected = [np.outer(F, F) * matrices[0], matrices[1], 4.0 * matrices[2]]
    rows, columns = np.array([3, 7]), slice(5, 20)
    for source, plain, K, scaled in zip(sources, matrix_sources(matrices), matrices, expected, strict=True):
        [(_, block)] = source.block(rows, columns)
        close(block, scaled[rows, columns])
        [(_, block)] = plain.block(rows, columns)
        np.testing.assert_array_equal(block, K[rows, columns])
        assert np.shares_memory(plain.group.matrix, K)
