"""Given matrices are checked in the first pass that reads all of them, whichever that is."""

import numpy as np
import pytest
from tests.reference.conic import conic_optimum

from kernelweave import MKLClassifier
from kernelweave.bank import precomputed
from kernelweave.bank.precomputed import PrecomputedBank
from kernelweave.geometry import LpBall, Simplex
from kernelweave.gram import LazyGrams, PackedGrams, choose, memory
from kernelweave.learners import Hinge
from kernelweave.solvers.problem import Walk

N = 40


@pytest.fixture(autouse=True)
def nothing_is_proved_beforehand(monkeypatch):
    monkeypatch.setattr(precomputed, "PROOF_BUDGET", 0.0)


@pytest.fixture
def matrices(rng):
    return [A @ A.T for A in rng.normal(size=(6, N, 8))]


def held(matrices, **options):
    fitted = PrecomputedBank().fit(matrices)
    return fitted, LazyGrams(fitted.sources(), len(matrices), N, **options)


VERBS = ("combine", "image", "images", "energies", "subset")


def answer(stack, verb):
    rng = np.random.default_rng(3)
    v, eta = rng.normal(size=N), rng.random(stack.n_kernels)
    v -= v.mean()
    if verb == "subset":
        return stack.subset(np.array([5, 0])).combine(np.ones(2))
    arguments = {"combine": (eta,), "image": (eta, v), "images": (v,), "energies": (v,)}
    return getattr(stack, verb)(*arguments[verb])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("verb", VERBS)
def test_first_and_later_passes_say_the_same(matrices, verb, centre, dtype):
    fitted, stack = held(matrices, centre=centre, dtype=dtype)
    first = answer(stack, verb)
    fitted.prove()
    later = answer(LazyGrams(fitted.sources(), 6, N, centre=centre, dtype=dtype), verb)
    tolerance = 1e-6 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(first, later, rtol=tolerance, atol=tolerance * np.abs(later).max())
    np.testing.assert_allclose(
        answer(stack, verb), later, rtol=tolerance, atol=tolerance * np.abs(later).max()
    )


def tampered(matrices, place, value):
    bad = matrices[4].copy()
    bad[place] = value
    return [*matrices[:4], bad, matrices[5]]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((3, 30), 0.5, r"Kernel 4 is not symmetric: entry \[3, 30\]"),
        ((30, 3), np.nan, r"Kernel 4 contains nan at \[30, 3\]"),
        ((3, 30), np.inf, r"Kernel 4 contains inf at \[3, 30\]"),
        ((7, 7), -1.0, "Kernel 4 is indefinite"),
        (([3, 30], [30, 3]), 1e3, "Kernel 4 is indefinite"),
    ],
)
def test_a_matrix_that_is_no_kernel_is_found_by_every_pass(matrices, verb, place, value, message):
    _, stack = held(tampered(matrices, place, value))
    with pytest.raises(ValueError, match=message):
        answer(stack, verb)


def test_rounding_is_evened_out_before_anything_is_said(matrices):
    upset = tampered(matrices, (3, 30), matrices[4][3, 30] * (1 + 1e-10))
    fitted, stack = held(upset)
    K = stack.combine(np.eye(6)[4])
    np.testing.assert_array_equal(K, (upset[4] + upset[4].T) / 2.0)
    np.testing.assert_array_equal(fitted.matrix(4), K)


@pytest.mark.parametrize("deferred", [False, True])
def test_the_even_sum_is_that_of_matrices_that_were_evened_out(matrices, deferred):
    upset = tampered(matrices, (3, 30), matrices[4][3, 30] * (1 + 1e-8))
    sources = PrecomputedBank().fit(upset).sources()
    if deferred:
        sources[0].defer(2)
    stack = PackedGrams.pack(sources, 6, N, "float64", False, 2, even=True)
    assert stack.settle() == deferred
    total = sum((K + K.T) / 2.0 for K in upset)
    np.testing.assert_allclose(stack.combine(np.ones(6)), total, rtol=0.0, atol=1e-13 * np.abs(total).max())


def test_only_samples_are_taken_of_what_nobody_has_looked_at(matrices):
    rows = np.array([1, 3, 5, 30])
    for place, seen in (((3, 30), False), ((30, 3), True)):  # the lower triangle is what is read
        _, stack = held(tampered(matrices, place, np.nan))
        if seen:
            with pytest.raises(ValueError, match="Kernel 4 contains nan"):
                stack.sample(rows)
        else:
            np.testing.assert_allclose(
                stack.sample(rows).combine(np.eye(6)[0]), matrices[0][np.ix_(rows, rows)], rtol=1e-6
            )
            with pytest.raises(ValueError, match="Kernel 4 contains nan"):
                stack.combine(np.ones(6))


@pytest.mark.parametrize("for_many", [True, False])
def test_many_samples_are_read_where_they_are_unless_for_many_fits(matrices, monkeypatch, for_many):
    monkeypatch.setattr(choose, "SMALL", 0)
    fitted = PrecomputedBank().fit(matrices)

    def stored(limit):
        monkeypatch.setattr(choose, "WORTH", limit)
        return choose.store(
            fitted.sources, N, 6, in_memory=fitted.in_memory, centre=True, tol=1e-3, for_many=for_many
        )

    assert isinstance(stored(N + 1), PackedGrams)
    many = stored(N)
    assert isinstance(many, PackedGrams if for_many else LazyGrams)
    assert many.is_rounded


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_fits_on_matrices_where_they_are_enclose_the_conic_optimum(matrices, monkeypatch, C):
    monkeypatch.setattr(choose, "SMALL", 0)
    monkeypatch.setattr(choose, "WORTH", N)
    for name, value in (("WORTH", N), ("FEWEST", 12), ("FEWEST_LEADING", 12)):
        monkeypatch.setattr(memory, name, value)
    y = np.where(np.arange(N) % 3, 1.0, -1.0)
    before = [K.copy() for K in matrices]
    model = MKLClassifier("precomputed", learner=Hinge(C=C), geometry=LpBall(2.0), tol=1e-3).fit(matrices, y)
    optimum = conic_optimum(matrices, y, ("hinge", C), ("lp", 2.0)).value
    assert model.certificate_.lower <= optimum * (1 + 1e-7)
    assert optimum <= model.certificate_.upper * (1 + 1e-7)
    assert model.certificate_.relative_gap <= 1e-3
    for K, was in zip(matrices, before, strict=True):
        np.testing.assert_array_equal(K, was)
    with pytest.raises(ValueError, match="Kernel 4 is not symmetric"):
        MKLClassifier("precomputed", learner=Hinge(C=C), tol=1e-3).fit(tampered(matrices, (3, 30), 0.5), y)


def test_what_several_threads_share_is_checked_before_they_start(matrices):
    bad = tampered(matrices, (3, 30), 0.5)
    fitted = PrecomputedBank().fit(bad)
    how = {"in_memory": True, "centre": True, "tol": 1e-6, "n_threads": 1}
    choose.store(fitted.sources, N, 6, **how)  # one walk checks on its way
    with pytest.raises(ValueError, match="Kernel 4 is not symmetric"):
        choose.store(fitted.sources, N, 6, shared=True, **how)


def test_entries_beyond_single_precision_are_estimated_as_doubles(rng, monkeypatch):
    monkeypatch.setattr(choose, "SMALL", 0)
    monkeypatch.setattr(choose, "WORTH", N)
    matrices = [1e26 * A @ A.T for A in rng.normal(size=(3, N, 8))]
    fitted = PrecomputedBank().fit(matrices)
    how = {"in_memory": True, "centre": True, "tol": 1e-3}
    assert not choose.store(fitted.sources, N, 3, **how).is_rounded
    room = memory.lazy_bytes(N, 3, 4)
    with pytest.raises(MemoryError):
        choose.store(fitted.sources, N, 3, memory_limit=room, **how)
    few = choose.store(fitted.sources, N, 3, memory_limit=memory.lazy_bytes(N, 3, 8), **how)
    assert isinstance(few, LazyGrams)


def test_only_the_closed_form_keeps_its_sample(matrices, monkeypatch):
    for name, value in (("WORTH", N), ("FEWEST", 12), ("FEWEST_LEADING", 12)):
        monkeypatch.setattr(memory, name, value)
    seen = []
    init = Walk.__init__

    def watched(self, problem, *args, **how):
        init(self, problem, *args, **how)
        if problem.bank.n_samples == N:
            seen.append(self.ahead is not None)

    monkeypatch.setattr(Walk, "__init__", watched)
    y = np.where(np.arange(N) % 3, 1.0, -1.0)
    for geometry in (LpBall(2.0), Simplex()):
        MKLClassifier("precomputed", geometry=geometry, tol=1e-3).fit(matrices, y)
    assert seen == [True, False]


@pytest.mark.parametrize(("n", "n_kernels", "tol"), [(1000, 3, 1e-2), (520, 75, 1e-3)])
@pytest.mark.parametrize("place", [(9, 3), (1, 1), (0, 9), (0, 23), (519, 0), (260, 257), (3, 500)])
@pytest.mark.parametrize("what", [np.nan, np.inf])
def test_what_is_no_number_is_named_before_anything_is_solved(rng, n, n_kernels, tol, place, what):
    X = rng.normal(size=(n, 2))
    K = X @ X.T
    Ks = [K] * (n_kernels - 1) + [K.copy()]
    Ks[-1][place] = Ks[-1][place[::-1]] = what
    with pytest.raises(ValueError, match=rf"Kernel {n_kernels - 1} contains (nan|inf)"):
        MKLClassifier("precomputed", geometry=Simplex(), tol=tol).fit(Ks, np.arange(n) % 2)


def test_a_sample_lacks_a_kernel_with_all_its_entries_or_with_none(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    whole, gap = X @ X.T, X @ X.T
    gap[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"Kernel 1 contains nan at \[0, 0\] but not at \[0, 1\]"):
        MKLClassifier("precomputed").fit([whole, gap], y)
    gap[0], gap[:, 0] = np.nan, np.nan
    assert MKLClassifier("precomputed").fit([whole, gap], y).kernel_weights_.shape == (2,)
