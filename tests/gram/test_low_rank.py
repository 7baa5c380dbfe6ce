"""Kernels told by a few samples, alone and beside others."""

import numpy as np
import pytest
from tests.reference.conic import conic_optimum

from kernelweave import KernelBank, MKLClassifier
from kernelweave.bank import Entry
from kernelweave.bank.gram_bank import GramBank
from kernelweave.errors import IncompatiblePartsError
from kernelweave.geometry import LpBall, Simplex
from kernelweave.gram import JoinedGrams, LazyGrams, LowRankGrams, PackedGrams, choose
from kernelweave.gram.basis import among_samples
from kernelweave.kernels import Gaussian, Linear, Polynomial, UnitMean
from kernelweave.learners import Hinge
from kernelweave.solvers import ColumnGeneration

N = 60
RNG = np.random.default_rng(5)
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


@pytest.fixture
def always_low_rank(monkeypatch):
    """Treat a few samples as if they were many."""
    monkeypatch.setattr(choose, "MANY", 10)
    monkeypatch.setattr(choose, "RANKS", 2)
    monkeypatch.setattr(choose, "KNOTTED", 10)
    monkeypatch.setattr(choose, "KNOTTED_RANKS", 2)
    monkeypatch.setattr(choose, "SMALL", 0)


def held(memory_limit=None, table=X, **how):
    fitted = BANK.fit(table)
    return GramBank.hold(fitted, centre=True, tol=1e-3, memory_limit=memory_limit, n_threads=2, **how).stack


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


@pytest.mark.parametrize("kind", ["packed beside", "lazy beside", "alone"])
@pytest.mark.parametrize("columns", [(), (3,)])
def test_the_verbs_are_what_the_kernels_say(always_low_rank, monkeypatch, kind, columns):
    if kind == "lazy beside":
        monkeypatch.setattr(choose, "packed_bytes", lambda *_: 1 << 62)
    stack = held()
    if kind == "alone":
        stack = stack.others[0]
        assert isinstance(stack, LowRankGrams)
        grams = [K for m, K in enumerate(BANK.fit(X).grams()) if m not in (3, 4)]
    else:
        assert isinstance(stack, JoinedGrams)
        assert isinstance(stack.first, PackedGrams if kind == "packed beside" else LazyGrams)
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
    np.testing.assert_allclose(np.tensordot(eta, stack.images(V), axes=1) + offset, K @ V, atol=2e-4)
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


@pytest.mark.parametrize("geometry", [(Simplex(), ("simplex",)), (LpBall(2.0), ("lp", 2.0))])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("lazy", [False, True])
def test_the_certificate_is_that_of_the_kernels_themselves(always_low_rank, monkeypatch, geometry, C, lazy):
    if lazy:
        monkeypatch.setattr(choose, "packed_bytes", lambda *_: 1 << 62)
    model = MKLClassifier(BANK, learner=Hinge(C), geometry=geometry[0], tol=1e-3, n_jobs=2).fit(X, Y)
    optimum = conic_optimum(list(BANK.fit(X).grams()), Y, ("hinge", C), geometry[1]).value
    assert model.certificate_.lower <= optimum * (1 + 1e-8)
    assert optimum * (1 - 1e-8) <= model.certificate_.upper
    assert model.duality_gap_ <= 1e-3


def test_where_memory_is_short_kernels_are_made_again(monkeypatch):
    monkeypatch.setattr(choose, "SMALL", 0)
    fitted = BANK.fit(X)
    lazy, packed = choose.lazy_bytes(N, 8, 4), choose.packed_bytes(N, 8, 4)
    assert isinstance(held(memory_limit=packed), PackedGrams)
    assert isinstance(held(memory_limit=lazy), LazyGrams)
    with pytest.raises(MemoryError, match="even when only their combination is held"):
        held(memory_limit=lazy - 1)
    exact = GramBank.hold(fitted, centre=True, tol=1e-6, memory_limit=choose.lazy_bytes(N, 8, 8)).stack
    assert isinstance(exact, LazyGrams)
    assert not exact.is_rounded


def test_for_many_problems_a_basis_is_second_choice(always_low_rank):
    packed = choose.packed_bytes(N, 8, 4)
    assert isinstance(held(memory_limit=packed), JoinedGrams)
    assert isinstance(held(memory_limit=packed, for_many=True), PackedGrams)
    assert isinstance(held(memory_limit=packed - 1, for_many=True), JoinedGrams)


def test_bases_count_as_memory_taken(always_low_rank):
    table = np.tile(X, (4, 1)) + 0.01 * RNG.normal(size=(4 * N, 3))
    bases = held(table=table).others[0].bases
    basis = sum(b.n_bytes for b in bases)
    packed = choose.packed_bytes(4 * N, 2, 4)  # two kernels of the bank have no small basis
    assert basis > 0
    assert packed > choose.lazy_bytes(4 * N, 8, 4)  # so that only the sum decides
    assert isinstance(held(memory_limit=basis + packed, table=table).first, PackedGrams)
    assert isinstance(held(memory_limit=basis + packed - 1, table=table).first, LazyGrams)
    for stack in (held(memory_limit=basis + packed - 1, table=table), held(table=table)):
        assert len(stack.others[0].bases) == len(bases)


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


def test_a_column_of_zeros_has_an_empty_basis(always_low_rank):
    table = X.copy()
    table[:, 1] = 0.0
    bank = KernelBank([Entry(Linear(), columns=[j]) for j in range(3)])
    model = MKLClassifier(bank, tol=1e-3).fit(table, Y)
    assert model.duality_gap_ <= 1e-3
    assert "rank" in model.storage_.how


def test_column_generation_does_not_meet_bases(always_low_rank):
    model = MKLClassifier(BANK, solver=ColumnGeneration(), tol=1e-3).fit(X, Y)
    assert model.duality_gap_ <= 1e-3
    assert "anew" in model.storage_.how
    held_low_rank = GramBank.hold(BANK.fit(X), centre=True, tol=1e-3)
    with pytest.raises(IncompatiblePartsError, match="JoinedGrams cannot be taken out one by one"):
        held_low_rank.subset(np.array([0]))


def test_lazy_passes_are_the_same_every_time():
    sources = BANK.fit(X).sources()
    v = RNG.normal(size=N)
    answers = set()
    for _ in range(20):
        answers.add(LazyGrams(sources, 8, N, n_threads=4).images(v).tobytes())
    assert len(answers) == 1


def test_kernels_too_small_or_large_for_float32_are_kept_in_float64(monkeypatch):
    monkeypatch.setattr(choose, "SMALL", 0)
    Ks = [K * 1e-40 for K in BANK.fit(X).grams()]
    model = MKLClassifier("precomputed", learner=Hinge(1e40), tol=1e-3).fit(Ks, Y)
    assert model.storage_.error == 0.0
    assert model.duality_gap_ <= 1e-3


def test_what_float32_found_is_kept_when_float64_does_not_fit(monkeypatch):
    monkeypatch.setattr(choose, "SMALL", 0)
    bank = GramBank.hold(BANK.fit(X), centre=True, tol=1e-3, memory_limit=choose.lazy_bytes(N, 8, 4))
    assert bank.is_rounded
    assert bank.refined() is None
