"""Bases found among knots: what the solver walks on, and what is known of the kernels themselves."""

import numpy as np
import pytest
from tests.reference.conic import conic_optimum

from kernelweave import KernelBank, MKLClassifier, MKLRegressor
from kernelweave.bank import Entry
from kernelweave.bank.gram_bank import GramBank
from kernelweave.geometry import BoxSimplex, LpBall, Simplex
from kernelweave.gram import JoinedGrams, LazyGrams, LowRankGrams, PackedGrams, choose
from kernelweave.gram.basis import among_knots
from kernelweave.kernels import Gaussian, Laplacian, Polynomial, UnitTrace
from kernelweave.learners import Hinge

N = 160
RNG = np.random.default_rng(21)
X = RNG.normal(size=(N, 4))
X[:, 2] = RNG.integers(0, 7, size=N)  # few values
X[0, 1] = 1e5  # an outlier
Y = np.where(X[:, 0] + 0.5 * X[:, 2] - 1.5 + 0.5 * RNG.normal(size=N) > 0, 1.0, -1.0)
SMOOTH = [Gaussian(width=1.5), Gaussian(width=6.0), Polynomial(degree=2)]
SINGLE = [Entry(kernel, columns=[j]) for j in range(4) for kernel in SMOOTH]
BANK = KernelBank([Entry(Gaussian(width=1.0)), Entry(Gaussian(width=4.0)), *SINGLE], scaling=UnitTrace())


@pytest.fixture
def always_low_rank(monkeypatch):
    """Treat a few samples as if they were many."""
    monkeypatch.setattr(choose, "KNOTTED", 10)
    monkeypatch.setattr(choose, "KNOTTED_RANKS", 2)
    monkeypatch.setattr(choose, "SMALL", 0)


def held(bank=BANK, **how):
    return GramBank.hold(bank.fit(X), centre=True, tol=1e-3, n_threads=2, **how).stack


@pytest.mark.parametrize("tolerance", [1e-6, 1e-12])
@pytest.mark.parametrize("place", [1, 2, 3, 4])
def test_a_basis_among_knots_loses_no_more_than_it_says(tolerance, place):
    source = BANK.fit(X).sources()[place]
    basis = among_knots(source, source.knots(), max_rank=80, tolerance=tolerance)
    assert basis.kernels == source.kernels
    assert (basis.lacking <= 1.01 * tolerance + 1e-14).all()
    for (_, K), C, size in zip(source.block(slice(0, N), slice(0, N)), basis.cores, basis.sizes, strict=True):
        assert size == np.diagonal(K).max()
        assert np.abs(K - basis.W @ C @ basis.W.T).max() <= (basis.error + 1e-7) * size
    assert among_knots(source, source.knots(), max_rank=1) is None


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_bases_take_no_more_than_there_is_room_for(always_low_rank, monkeypatch, share):
    monkeypatch.setattr(choose, "TOGETHER", 1)
    single = KernelBank(SINGLE)
    every = held(single)
    assert isinstance(every, LowRankGrams)
    needed = sum(basis.n_bytes for basis in every.bases)
    limit = choose.lazy_bytes(N, len(SINGLE), 4) + share * needed
    stack = held(single, memory_limit=limit)
    bases = {0.0: (), 0.5: stack.others[0].bases if share == 0.5 else (), 1.0: every.bases}[share]
    assert sum(basis.n_bytes for basis in bases) <= share * needed
    kinds = {0.0: LazyGrams, 0.5: JoinedGrams, 1.0: LowRankGrams}
    assert isinstance(stack, kinds[share])
    if share == 0.5:
        assert 1 <= len(bases) < len(every.bases)
        assert isinstance(stack.first, LazyGrams)


@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("alone", [False, True])
def test_products_of_the_originals_are_within_reach(always_low_rank, columns, alone):
    stack, grams = held(), np.array(list(BANK.fit(X).grams()))
    assert isinstance(stack, JoinedGrams)
    assert isinstance(stack.first, PackedGrams)
    if alone:
        stack, grams = stack.others[0], grams[2:]
        assert isinstance(stack, LowRankGrams)
    for _ in range(2):  # the second question is about other coefficients
        V = 100.0 * RNG.normal(size=(N, *columns))
        V -= V.mean(axis=0)
        eta = RNG.random(len(grams))
        eta[3] = 0.0
        image, reach = stack.image_within(eta, V)
        missed = np.abs(image + stack.offset(eta, V) - np.tensordot(eta, grams, axes=1) @ V)
        assert image.shape == reach.shape == V.shape
        assert (missed <= reach + 1e-9).all()
        assert reach.max() <= (1e-9 if alone else 1e-6) * np.abs(V).sum()
        true = np.array([0.5 * np.vdot(V, K @ V) for K in grams])
        errors = stack.energy_errors(V)
        assert (stack.energies(V) + errors >= true - 1e-12 * np.abs(V).sum() ** 2).all()
        assert (errors >= 0.0).all()
        assert errors.max() <= 1e-5 * np.abs(V).sum() ** 2 / N


def test_a_basis_that_is_off_is_found_out(always_low_rank):
    stack = held().others[0]
    V = RNG.normal(size=N)
    V -= V.mean()
    for basis in stack.bases:
        basis.cores[0] *= 0.9  # not the kernel any more
    true = [0.5 * V @ K @ V for K in list(BANK.fit(X).grams())[2:]]
    assert (stack.energies(V) < np.array(true) * 0.95).any()
    assert (stack.energies(V) + stack.energy_errors(V) >= np.array(true) * (1 - 1e-9)).all()
    K = np.tensordot(np.ones(12), list(BANK.fit(X).grams())[2:], axes=1)
    image, reach = stack.image_within(np.ones(12), V)
    off = image - K @ V
    assert (np.abs(off - off.mean()) <= reach + 1e-9).all()  # what centring removes is a constant


def test_where_one_basis_has_no_knots_nothing_is_promised(always_low_rank, monkeypatch):
    monkeypatch.setattr(choose, "MANY", 10)
    monkeypatch.setattr(choose, "RANKS", 2)
    bank = KernelBank([*SINGLE[:3], Entry(Gaussian(width=3.0), columns=[1, 3])])
    stack = held(bank)
    assert isinstance(stack, LowRankGrams)
    assert np.isinf(stack.image_within(np.ones(4), np.ones(N))[1]).all()
    assert np.isinf(stack.energy_errors(np.ones(N))).all()
    assert np.isinf(held().sample(np.arange(50)).energy_errors(np.ones(50))[2:]).all()


CASES = [(Simplex(), ("simplex",)), (LpBall(2.0), ("lp", 2.0)), (BoxSimplex(theta=0.3), ("box", 0.3))]


@pytest.mark.parametrize(("geometry", "same"), CASES)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_the_certificate_is_that_of_the_kernels_themselves(always_low_rank, geometry, same, C):
    model = MKLClassifier(BANK, learner=Hinge(C), geometry=geometry, tol=1e-3, n_jobs=2).fit(X, Y)
    optimum = conic_optimum(list(BANK.fit(X).grams()), Y, ("hinge", C), same).value
    assert model.certificate_.lower <= optimum * (1 + 1e-8)
    assert optimum * (1 - 1e-8) <= model.certificate_.upper
    assert model.duality_gap_ <= 1e-3
    assert "rank" in model.storage_.how


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
    n = choose.KNOTTED
    Z, target = table(n)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, size=n) if kind == "weights" else None
    if kind in ("regression", "targets"):
        y = target if kind == "regression" else np.column_stack([target, Z[:, 0] ** 2])
        model = MKLRegressor(WIDE, geometry=LpBall(2.0), n_jobs=2)
    else:
        y = np.digitize(target, [0.5] if kind != "three classes" else [0.0, 1.0])
        model = MKLClassifier(WIDE, learner=Hinge(10.0), geometry=LpBall(2.0), n_jobs=2)
    rough = model.set_params(tol=1e-3).fit(Z, y, sample_weight=weight)
    assert "rank" in rough.storage_.how
    found = rough.certificate_
    fine = model.set_params(tol=1e-6).fit(Z, y, sample_weight=weight)
    assert "rank" not in fine.storage_.how
    for one, other in zip(np.atleast_1d(found), np.atleast_1d(fine.certificate_), strict=True):
        assert one.lower <= other.upper
        assert other.lower <= one.upper
        assert one.relative_gap <= 1e-3


def test_bases_begin_at_a_thousand_samples():
    for n, kind in ((choose.KNOTTED, JoinedGrams), (choose.KNOTTED - 1, PackedGrams)):
        fitted = WIDE.fit(table(n)[0])
        assert isinstance(GramBank.hold(fitted, centre=True, tol=1e-3).stack, kind)
    fitted = WIDE.fit(table(choose.KNOTTED)[0])
    assert isinstance(GramBank.hold(fitted, centre=True, tol=1e-3, for_many=True).stack, PackedGrams)
    for how in ({"tol": 1e-5}, {"tol": 1e-3, "dtype": "float64"}, {"tol": 1e-3, "dtype": "float32"}):
        assert isinstance(GramBank.hold(fitted, centre=True, **how).stack, PackedGrams)
    assert isinstance(GramBank.hold(fitted, centre=True, tol=1e-3, lazy=True).stack, LazyGrams)
    rough = KernelBank([Laplacian(), Gaussian(width=1.0)]).fit(table(choose.KNOTTED)[0][:, :1])
    assert isinstance(GramBank.hold(rough, centre=True, tol=1e-3).stack, PackedGrams)
