"""Kernels told by a few samples or knots: what the solver sees, and what is known of the originals."""

from dataclasses import replace

import numpy as np
import pytest
from tests.reference.conic import conic_optimum

from kernelweave import KernelBank, MKLClassifier, MKLRegressor
from kernelweave.bank import Entry
from kernelweave.geometry import BoxSimplex, LpBall, Simplex
from kernelweave.gram import (
    BlockGrams,
    JoinedGrams,
    LowRankGrams,
    PackedGrams,
    StoragePolicy,
    build_gram_stack,
    policy,
)
from kernelweave.gram.lowrank.low_rank import among_knots, among_samples
from kernelweave.gram.memory import packed_bytes, unpacked_bytes
from kernelweave.kernels import Gaussian, Linear, Polynomial, UnitMean, UnitTrace
from kernelweave.learners import Hinge
from kernelweave.solvers import ColumnGeneration

RNG = np.random.default_rng(5)
ROUGH = StoragePolicy(centre=True, tol=1e-3, n_threads=2)

# Few samples, too few for knots: bases are found among them.
N = 60
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.5 * RNG.normal(size=N) > 0, 1.0, -1.0)
SMOOTH = [Gaussian(width=0.5), Gaussian(width=4.0), Polynomial(degree=2)]
BANK = KernelBank(
    [
        *[Entry(kernel, columns=[0]) for kernel in SMOOTH],
        *[Entry(kernel) for kernel in (Gaussian(width=1.0), Gaussian(width=0.3))],
        *[Entry(kernel, columns=[2]) for kernel in SMOOTH],
    ],
    scaling=UnitMean(),
)

# More of them: kernels of one variable have knots, which tell the originals.
N_KNOTTED = 160
X_KNOTTED = RNG.normal(size=(N_KNOTTED, 4))
X_KNOTTED[:, 2] = RNG.integers(0, 7, size=N_KNOTTED)  # few values
X_KNOTTED[0, 1] = 1e5  # an outlier
NOISE = 0.5 * RNG.normal(size=N_KNOTTED)
Y_KNOTTED = np.where(X_KNOTTED[:, 0] + 0.5 * X_KNOTTED[:, 2] - 1.5 + NOISE > 0, 1.0, -1.0)
SINGLE = [
    Entry(kernel, columns=[j])
    for j in range(4)
    for kernel in (Gaussian(width=1.5), Gaussian(width=6.0), Polynomial(degree=2))
]
KNOTTED = KernelBank([Entry(Gaussian(width=1.0)), Entry(Gaussian(width=4.0)), *SINGLE], scaling=UnitTrace())


@pytest.fixture
def rounded(monkeypatch):
    """Round kernels of few samples as if they were many."""

    def dtype(self, n_samples, n_kernels):
        return self.dtype if self.dtype != "auto" else "float32" if self.tol >= 1e-4 else "float64"

    monkeypatch.setattr(StoragePolicy, "preferred_dtype", dtype)


@pytest.fixture
def low_rank(rounded, monkeypatch):
    """Look for bases among few samples, or their knots, as if they were many."""

    def basis(source, n_samples):
        knots = source.knots()
        if knots is not None:
            return among_knots(source, knots, n_samples // 2)
        return among_samples(source, n_samples // 2) if source.may_be_low_rank else None

    monkeypatch.setattr(policy, "_basis", basis)


def held(bank=BANK, table=X, **changes):
    return build_gram_stack(bank.fit(table), replace(ROUGH, **changes))


def knotted(bank=KNOTTED, **changes):
    return held(bank, X_KNOTTED, **changes)


@pytest.mark.parametrize("tolerance", [1e-6, 1e-12])
def test_the_basis_loses_no_more_than_it_says(tolerance):
    fitted = BANK.fit(X)
    source = fitted.sources()[0]
    basis = among_samples(source, max_rank=40, tolerance=tolerance)
    assert basis.rank < 40
    assert (basis.lacking <= tolerance).all()
    for m, K in source.block(slice(0, N), slice(0, N)):
        approximation = basis.W @ basis.cores[basis.kernels.index(m)] @ basis.W.T
        # What each sample lacks of its length bounds every entry, by Cauchy and Schwarz.
        lengths = np.sqrt(np.diagonal(K).max() * len(basis.kernels) * basis.lacking) + 1e-8
        scale = np.sqrt(np.diagonal(K)).max()
        assert (np.abs(K - approximation) <= scale * (lengths[:, None] + lengths) * 1.5).all()
        assert np.linalg.eigvalsh(approximation)[0] > -1e-9 * np.trace(K)


def test_a_kernel_of_full_rank_has_no_small_basis():
    source = KernelBank([Gaussian(width=0.05)]).fit(X).sources()[0]
    assert among_samples(source, max_rank=20) is None


@pytest.mark.parametrize("tolerance", [1e-12, 1e-8, 1e-4])
def test_the_error_of_a_basis_is_the_most_that_an_entry_loses(tolerance):
    x = np.random.default_rng(0).standard_cauchy(size=(200, 1))
    kernels = [Gaussian(width=w) for w in (0.5, 2.0)] + [Polynomial(degree=3)]
    source = KernelBank(kernels).fit(x).sources()[0]
    basis = among_samples(source, max_rank=200, tolerance=tolerance)
    assert 0.0 < basis.error <= 3.0 * np.sqrt(3 * tolerance)
    for m, K in source.block(slice(0, 200), slice(0, 200)):
        approximation = basis.W @ basis.cores[m] @ basis.W.T
        assert np.abs(K - approximation).max() <= basis.error * np.diagonal(K).max()


@pytest.mark.parametrize("tolerance", [1e-6, 1e-12])
@pytest.mark.parametrize("place", [1, 2, 3, 4])
def test_a_basis_among_knots_loses_no_more_than_it_says(tolerance, place):
    source = KNOTTED.fit(X_KNOTTED).sources()[place]
    basis = among_knots(source, source.knots(), max_rank=80, tolerance=tolerance)
    every = slice(0, N_KNOTTED)
    assert basis.kernels == source.kernels
    assert (basis.lacking <= 1.01 * tolerance + 1e-14).all()
    for (_, K), C, size in zip(source.block(every, every), basis.cores, basis.sizes, strict=True):
        assert size == np.diagonal(K).max()
        assert np.abs(K - basis.W @ C @ basis.W.T).max() <= (basis.error + 1e-7) * size
    assert among_knots(source, source.knots(), max_rank=1) is None


@pytest.mark.parametrize("kind", ["packed beside", "computed beside", "alone"])
@pytest.mark.parametrize("columns", [(), (3,)])
def test_the_verbs_are_what_the_kernels_say(low_rank, monkeypatch, kind, columns):
    if kind == "computed beside":
        monkeypatch.setattr(policy, "packed_bytes", lambda *_: 1 << 62)
    stack = held()
    if kind == "alone":
        stack = stack.second
        assert isinstance(stack, LowRankGrams)
        grams = [K for m, K in enumerate(BANK.fit(X).grams()) if m not in (3, 4)]
    else:
        assert isinstance(stack, JoinedGrams)
        assert isinstance(stack.first, PackedGrams if kind == "packed beside" else BlockGrams)
        grams = list(BANK.fit(X).grams())
    V = RNG.normal(size=(N, *columns))
    V -= V.mean(axis=0)
    eta = RNG.random(len(grams))
    eta[1] = 0.0
    K = np.tensordot(eta, grams, axes=1)
    offset = stack.offset(eta, V)
    combined = stack.combine(eta)
    assert stack.combine(np.ones(len(grams)), out=combined) is combined
    np.testing.assert_allclose(stack.combine(eta) @ V + offset, K @ V, atol=2e-4)
    np.testing.assert_allclose(np.tensordot(eta, stack.matvecs(V), axes=1) + offset, K @ V, atol=2e-4)
    np.testing.assert_allclose(stack.energies(V), [0.5 * np.vdot(V, k @ V) for k in grams], rtol=1e-4)
    np.testing.assert_allclose(stack.sizes, [np.diagonal(k).max() for k in grams])
    assert stack.is_rounded
    assert stack.n_kernels == len(grams)
    rows = np.arange(3, N, 7)
    part = stack.sample(rows)
    few, v = [k[np.ix_(rows, rows)] for k in grams], V[rows] - V[rows].mean(axis=0)
    K = np.tensordot(eta, few, axes=1)
    np.testing.assert_allclose(part.combine(eta) @ v + part.offset(eta, v), K @ v, atol=2e-4)
    np.testing.assert_allclose(part.energies(v), [0.5 * np.vdot(v, k @ v) for k in few], rtol=1e-4)
    assert (part.n_kernels, part.n_samples) == (len(grams), rows.size)
    assert stack.n_samples == N


@pytest.mark.parametrize("which", [[0], [3], [6, 3, 0, 1], [4, 3], [7, 5], list(range(8))])
def test_a_subset_holds_each_kernel_as_it_was_held(low_rank, which):
    stack, grams = held(), list(BANK.fit(X).grams())
    some, v, eta = [grams[m] for m in which], RNG.normal(size=N), RNG.random(len(which))
    v -= v.mean()
    part = stack.subset(np.array(which))
    expected = np.tensordot(eta, some, axes=1) @ v
    np.testing.assert_allclose(part.combine(eta) @ v + part.offset(eta, v), expected, atol=2e-4)
    np.testing.assert_allclose(part.energies(v), [0.5 * v @ K @ v for K in some], rtol=1e-4)
    np.testing.assert_allclose(part.matvecs(v).shape, (len(which), N))
    np.testing.assert_allclose(part.sizes, [np.diagonal(K).max() for K in some])
    assert part.n_kernels == len(which)
    assert part.storage.error > 0.0


@pytest.mark.parametrize("geometry", [(Simplex(), ("simplex",)), (LpBall(2.0), ("lp", 2.0))])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("packed", [True, False])
def test_the_certificate_is_that_of_the_kernels_themselves(low_rank, monkeypatch, geometry, C, packed):
    if not packed:
        monkeypatch.setattr(policy, "packed_bytes", lambda *_: 1 << 62)
    model = MKLClassifier(BANK, learner=Hinge(C), geometry=geometry[0], tol=1e-3, n_jobs=2).fit(X, Y)
    optimum = conic_optimum(list(BANK.fit(X).grams()), Y, ("hinge", C), geometry[1]).value
    assert model.certificate_.lower <= optimum * (1 + 1e-8)
    assert optimum * (1 - 1e-8) <= model.certificate_.upper
    assert model.duality_gap_ <= 1e-3


CASES = [(Simplex(), ("simplex",)), (LpBall(2.0), ("lp", 2.0)), (BoxSimplex(theta=0.3), ("box", 0.3))]


@pytest.mark.parametrize(("geometry", "same"), CASES)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_knots_make_the_certificate_that_of_the_kernels_themselves(low_rank, geometry, same, C):
    model = MKLClassifier(KNOTTED, learner=Hinge(C), geometry=geometry, tol=1e-3, n_jobs=2)
    model.fit(X_KNOTTED, Y_KNOTTED)
    optimum = conic_optimum(list(KNOTTED.fit(X_KNOTTED).grams()), Y_KNOTTED, ("hinge", C), same).value
    assert model.certificate_.lower <= optimum * (1 + 1e-8)
    assert optimum * (1 - 1e-8) <= model.certificate_.upper
    assert model.duality_gap_ <= 1e-3
    assert "rank" in model.storage_.how


@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("alone", [False, True])
def test_products_of_the_originals_are_within_their_errors(low_rank, columns, alone):
    stack, grams = knotted(), np.array(list(KNOTTED.fit(X_KNOTTED).grams()))
    assert isinstance(stack, JoinedGrams)
    assert isinstance(stack.first, PackedGrams)
    if alone:
        stack, grams = stack.second, grams[2:]
        assert isinstance(stack, LowRankGrams)
    for _ in range(2):  # the second question is about other coefficients
        V = 100.0 * RNG.normal(size=(N_KNOTTED, *columns))
        V -= V.mean(axis=0)
        eta = RNG.random(len(grams))
        eta[3] = 0.0
        product, error = stack.matvec_with_error(eta, V)
        missed = np.abs(product + stack.offset(eta, V) - np.tensordot(eta, grams, axes=1) @ V)
        assert product.shape == error.shape == V.shape
        assert (missed <= error + 1e-9).all()
        assert error.max() <= (1e-9 if alone else 1e-6) * np.abs(V).sum()
        true = np.array([0.5 * np.vdot(V, K @ V) for K in grams])
        errors = stack.energy_errors(V)
        assert (stack.energies(V) + errors >= true - 1e-12 * np.abs(V).sum() ** 2).all()
        assert (errors >= 0.0).all()
        assert errors.max() <= 1e-5 * np.abs(V).sum() ** 2 / N_KNOTTED


def test_a_basis_that_is_off_is_found_out(low_rank):
    stack = knotted().second
    V = RNG.normal(size=N_KNOTTED)
    V -= V.mean()
    for basis in stack.bases:
        basis.cores[0] *= 0.9  # not the kernel any more
    true = [0.5 * V @ K @ V for K in list(KNOTTED.fit(X_KNOTTED).grams())[2:]]
    assert (stack.energies(V) < np.array(true) * 0.95).any()
    assert (stack.energies(V) + stack.energy_errors(V) >= np.array(true) * (1 - 1e-9)).all()
    K = np.tensordot(np.ones(12), list(KNOTTED.fit(X_KNOTTED).grams())[2:], axes=1)
    product, error = stack.matvec_with_error(np.ones(12), V)
    off = product - K @ V
    assert (np.abs(off - off.mean()) <= error + 1e-9).all()  # what centring removes is a constant


def test_where_one_basis_has_no_knots_nothing_is_promised(low_rank):
    bank = KernelBank([*SINGLE[:3], Entry(Gaussian(width=3.0), columns=[1, 3])])
    stack = knotted(bank)
    assert isinstance(stack, LowRankGrams)
    assert np.isinf(stack.matvec_with_error(np.ones(4), np.ones(N_KNOTTED))[1]).all()
    assert np.isinf(stack.energy_errors(np.ones(N_KNOTTED))).all()
    assert np.isinf(knotted().sample(np.arange(50)).energy_errors(np.ones(50))[2:]).all()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_bases_take_no_more_than_there_is_room_for(low_rank, share):
    # Room is counted after eight bases at a time: have more of them.
    single = KernelBank([entry for entry in SINGLE for _ in range(3)])
    every = knotted(single)
    assert isinstance(every, LowRankGrams)
    needed = sum(basis.n_bytes for basis in every.bases)
    limit = unpacked_bytes(N_KNOTTED, len(single.entries), 4) + share * needed
    stack = knotted(single, memory_limit=limit)
    assert isinstance(stack, {0.0: BlockGrams, 0.5: JoinedGrams, 1.0: LowRankGrams}[share])
    if share == 0.5:
        bases = stack.second.bases
        assert sum(basis.n_bytes for basis in bases) <= share * needed
        assert 1 <= len(bases) < len(every.bases)
        assert isinstance(stack.first, BlockGrams)


def test_for_several_problems_a_basis_is_second_choice(low_rank):
    packed = packed_bytes(N, 8, 4)
    assert isinstance(held(memory_limit=packed), JoinedGrams)
    assert isinstance(held(memory_limit=packed, several_problems=True), PackedGrams)
    assert isinstance(held(memory_limit=packed - 1, several_problems=True), JoinedGrams)


def test_bases_count_as_memory_taken(low_rank):
    table = np.tile(X, (4, 1)) + 0.01 * RNG.normal(size=(4 * N, 3))
    bases = held(table=table).second.bases
    basis = sum(b.n_bytes for b in bases)
    packed = packed_bytes(4 * N, 2, 4)  # two kernels of the bank have no small basis
    assert basis > 0
    assert packed > unpacked_bytes(4 * N, 8, 4)  # so that only the sum decides
    assert isinstance(held(memory_limit=basis + packed, table=table).first, PackedGrams)
    assert isinstance(held(memory_limit=basis + packed - 1, table=table).first, BlockGrams)
    for stack in (held(memory_limit=basis + packed - 1, table=table), held(table=table)):
        assert len(stack.second.bases) == len(bases)


def test_a_column_of_zeros_has_an_empty_basis(low_rank):
    table = X.copy()
    table[:, 1] = 0.0
    bank = KernelBank([Entry(Linear(), columns=[j]) for j in range(3)])
    model = MKLClassifier(bank, tol=1e-3).fit(table, Y)
    assert model.duality_gap_ <= 1e-3
    assert "rank" in model.storage_.how


def test_column_generation_computes_kernels_anew_and_looks_for_no_bases(low_rank):
    model = MKLClassifier(BANK, solver=ColumnGeneration(), tol=1e-3).fit(X, Y)
    assert model.duality_gap_ <= 1e-3
    assert "anew" in model.storage_.how


def test_kernels_too_small_for_float32_are_solved_in_float64(rounded):
    Ks = [K * 1e-40 for K in BANK.fit(X).grams()]
    model = MKLClassifier("precomputed", learner=Hinge(1e40), tol=1e-3).fit(Ks, Y)
    assert model.storage_.error == 0.0
    assert model.duality_gap_ <= 1e-3


def test_what_float32_found_is_kept_when_float64_does_not_fit(rounded):
    limit = unpacked_bytes(N, 8, 4)
    assert held(memory_limit=limit).is_rounded
    with pytest.raises(MemoryError):
        held(memory_limit=limit, dtype="float64")
    model = MKLClassifier(BANK, tol=1e-3, memory_limit=limit).fit(X, Y)
    assert model.storage_.error > 0.0


def table(n, seed=0):
    """Columns of every kind: smooth, heavy-tailed, whole numbers, two values, constant, far from zero."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 6))
    Z[:, 1] = rng.standard_t(2, size=n)
    Z[:, 2], Z[:, 3], Z[:, 4] = rng.integers(0, 9, size=n), rng.integers(0, 2, size=n), 2.5
    Z[:, 5] += 300.0
    return Z, Z[:, 0] + 0.3 * Z[:, 2] - Z[:, 3] + 0.7 * rng.normal(size=n)


WIDE = KernelBank.per_feature(widths=(0.5, 4.0), degrees=(2,))


@pytest.mark.parametrize("kind", ["two classes", "three classes", "weights", "regression", "targets"])
def test_bounds_agree_with_those_of_float64(kind):
    n = 1000  # from where on bases are looked for
    Z, target = table(n)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, size=n) if kind == "weights" else None
    if kind in ("regression", "targets"):
        y = target if kind == "regression" else np.column_stack([target, Z[:, 0] ** 2])
        model = MKLRegressor(WIDE, geometry=LpBall(2.0), n_jobs=2)
    else:
        y = np.digitize(target, [0.5] if kind != "three classes" else [0.0, 1.0])
        model = MKLClassifier(WIDE, learner=Hinge(10.0), geometry=LpBall(2.0), n_jobs=2)
    rough = model.set_params(tol=1e-3).fit(Z, y, sample_weight=weight)
    several = kind == "three classes"  # several problems: then packing pays
    assert ("rank" in rough.storage_.how) == (not several)
    found = rough.certificate_
    fine = model.set_params(tol=1e-6).fit(Z, y, sample_weight=weight)
    assert "rank" not in fine.storage_.how
    for one, other in zip(np.atleast_1d(found), np.atleast_1d(fine.certificate_), strict=True):
        assert one.lower <= other.upper
        assert other.lower <= one.upper
        assert one.relative_gap <= 1e-3
