"""Upper triangles of given matrices are checked beside the work: nothing passes that would not at once."""

import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.reference.conic import conic_optimum

from kernelweave import FisherMKLClassifier, MKLClassifier, MKLRegressor, OneClassMKL, _core, path
from kernelweave.bank import precomputed
from kernelweave.bank.precomputed import PrecomputedBank
from kernelweave.geometry import BoxSimplex, LpBall, Simplex, Uniform
from kernelweave.gram import LazyGrams, PackedGrams, choose, memory
from kernelweave.learners import Hinge
from kernelweave.solvers.problem import Walk

N = 60


@pytest.fixture(autouse=True)
def nothing_is_proved_beforehand(monkeypatch):
    monkeypatch.setattr(precomputed, "PROOF_BUDGET", 0.0)


@pytest.fixture(params=["packed", "in place", "doubles"])
def storage(request, monkeypatch):
    """Have small problems held as large ones are."""
    if request.param != "doubles":
        monkeypatch.setattr(choose, "SMALL", 0)
    if request.param == "in place":
        monkeypatch.setattr(choose, "WORTH", N)
        for name in ("FEWEST", "FEWEST_LEADING"):
            monkeypatch.setattr(memory, name, 20)
        monkeypatch.setattr(memory, "WORTH", N)
    return request.param


@pytest.fixture
def matrices(rng):
    return [A @ A.T for A in rng.normal(size=(6, N, 8))]


@pytest.fixture
def y(rng):
    return np.where(rng.random(N) < 0.5, 1.0, -1.0)


def tampered(matrices, place, value):
    bad = matrices[4].copy()
    bad[place] = value
    return [*matrices[:4], bad, matrices[5]]


BAD = [
    ((3, 30), 0.5, r"Kernel 4 is not symmetric: entry \[3, 30\]"),
    ((30, 3), 0.5, r"Kernel 4 is not symmetric: entry \[3, 30\]"),
    ((3, 30), np.nan, r"Kernel 4 contains nan at \[3, 30\]"),
    ((58, 59), -np.inf, r"Kernel 4 contains -inf at \[58, 59\]"),
    ((0, 59), 1e-3, r"Kernel 4 is not symmetric: entry \[0, 59\]"),
]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("place", "value", "message"), BAD)
@pytest.mark.parametrize("geometry", [LpBall(2.0), Simplex(), BoxSimplex(nu=0.5), Uniform()])
def test_a_fit_ends_with_what_is_wrong(matrices, y, storage, geometry, place, value, message, n_jobs):
    model = MKLClassifier("precomputed", geometry=geometry, tol=1e-3, n_jobs=n_jobs)
    with pytest.raises(ValueError, match=message):
        model.fit(tampered(matrices, place, value), y)
    assert not hasattr(model, "kernel_weights_")


@pytest.mark.parametrize("several", ["per_class", "shared"])
def test_so_do_fits_of_several_classes_paths_and_other_models(matrices, y, storage, several):
    bad = tampered(matrices, (3, 30), 0.5)
    models = [
        lambda: MKLClassifier("precomputed", multiclass=several, tol=1e-3, n_jobs=2).fit(
            bad, np.arange(N) % 3
        ),
        lambda: MKLRegressor("precomputed", tol=1e-3).fit(bad, y),
        lambda: OneClassMKL("precomputed", tol=1e-3).fit(bad),
        lambda: path(MKLClassifier("precomputed", tol=1e-3), bad, y, param="learner__C", values=[0.1, 1.0]),
    ]
    for fit in models:
        with pytest.raises(ValueError, match="Kernel 4 is not symmetric"):
            fit()


def test_what_looks_indefinite_is_called_asymmetric_if_it_is(matrices, y, storage):
    """The lower triangle alone is no kernel at all: a walk over it would give up for other reasons."""
    upset = matrices[4].copy()
    upset[np.tril_indices(N, -1)] *= -0.9
    with pytest.raises(ValueError, match="Kernel 4 is not symmetric"):
        MKLClassifier("precomputed", geometry=LpBall(2.0), tol=1e-3).fit([*matrices[:4], upset], y)


@pytest.mark.parametrize("geometry", [("lp", 2.0), ("simplex",)])
def test_rounding_is_evened_out_and_the_walk_repeated(matrices, y, storage, geometry, rng, monkeypatch):
    off = 1.0 + 1e-9 * rng.normal(size=(N, N))  # both triangles, on their own
    upset = [K * off for K in matrices]
    walks = []
    init = Walk.__init__

    def watched(self, problem, *args, **how):
        init(self, problem, *args, **how)
        walks.append(problem.bank.n_samples == N)

    monkeypatch.setattr(Walk, "__init__", watched)
    chosen = LpBall(2.0) if geometry[0] == "lp" else Simplex()
    model = MKLClassifier("precomputed", geometry=chosen, tol=1e-4, n_jobs=2).fit(upset, y)
    assert sum(walks) == (1 if storage == "doubles" else 2)  # in float64 all is checked before
    symmetric = [(K + K.T) / 2.0 for K in upset]
    optimum = conic_optimum(symmetric, y, ("hinge", 1.0), geometry).value
    assert model.certificate_.lower <= optimum * (1 + 1e-7)
    assert optimum <= model.certificate_.upper * (1 + 1e-7)
    walks.clear()
    MKLClassifier("precomputed", geometry=chosen, tol=1e-4, n_jobs=2).fit(symmetric, y)
    assert sum(walks) == 1


def test_few_machines_are_solved_for_what_is_no_kernel(matrices, y, storage, monkeypatch):
    """Energies above the diagonal and sums below it are those of two matrices: no gap would ever close."""
    solved = []
    visit = Walk.visit

    def watched(self, *args, **how):
        solved.append(self.problem.bank.n_samples)
        return visit(self, *args, **how)

    monkeypatch.setattr(Walk, "visit", watched)
    bad = tampered(matrices, (3, 30), 3.0)
    for n_jobs in (1, 2):
        for model in (FisherMKLClassifier, MKLRegressor, MKLClassifier):
            with pytest.raises(ValueError, match="Kernel 4 is not symmetric"):
                model("precomputed", tol=1e-3, n_jobs=n_jobs).fit(bad, y)
    assert solved.count(N) <= 30


@pytest.mark.parametrize("stop_after", [1, 2])
def test_an_interrupt_is_not_followed_by_a_new_walk(matrices, y, storage, rng, monkeypatch, stop_after):
    upset = [K * (1.0 + 1e-9 * rng.normal(size=(N, N))) for K in matrices]
    visit, solved = Walk.visit, []

    def watched(self, *args, **how):
        if self.problem.bank.n_samples == N:
            solved.append(1)
            if len(solved) == stop_after + 1:
                raise KeyboardInterrupt
        return visit(self, *args, **how)

    monkeypatch.setattr(Walk, "visit", watched)
    tol = 1e-9 if storage == "doubles" else 1e-4
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = MKLClassifier("precomputed", geometry=LpBall(1.1), tol=tol, n_jobs=2).fit(upset, y)
    assert len(solved) <= stop_after + 2
    assert model.kernel_weights_.shape == (6,)


def test_a_stack_that_is_told_to_settle_says_whether_its_answers_are_void(matrices):
    off = tampered(matrices, (3, 30), matrices[4][3, 30] * (1 + 1e-10))
    for given, changed in ((matrices, False), (off, True)):
        fitted = PrecomputedBank().fit(given)
        sources = fitted.sources()
        sources[0].defer(2)
        lazy = LazyGrams(sources, 6, N, centre=True, n_threads=2)
        K = lazy.combine(np.eye(6)[4])
        np.testing.assert_array_equal(fitted.given[4], given[4])
        assert lazy.settle() is changed
        assert lazy.settle() is False
        sources = PrecomputedBank().fit(given).sources()
        sources[0].defer(2)
        packed = PackedGrams.pack(sources, 6, N, "float64", False, 2)
        before = packed.combine(np.eye(6)[4])
        assert packed.settle() is changed
        even = (given[4] + given[4].T) / 2.0
        np.testing.assert_array_equal(packed.combine(np.eye(6)[4]), even)
        np.testing.assert_array_equal(before, np.tril(given[4]) + np.tril(given[4], -1).T)
        assert K.shape == before.shape


def test_without_the_promise_to_settle_all_is_told_at_once(matrices):
    bad = tampered(matrices, (3, 30), 0.5)
    for read in (
        lambda sources: LazyGrams(sources, 6, N).combine(np.ones(6)),
        lambda sources: PackedGrams.pack(sources, 6, N),
    ):
        with pytest.raises(ValueError, match="Kernel 4 is not symmetric"):
            read(PrecomputedBank().fit(bad).sources())


@pytest.mark.parametrize("verb", ["combine", "energies"])
def test_the_verdict_comes_with_the_next_pass_once_all_is_read(matrices, verb):
    sources = PrecomputedBank().fit(tampered(matrices, (3, 30), 0.5)).sources()
    sources[0].defer(2)
    lazy = LazyGrams(sources, 6, N, n_threads=2)
    lazy.combine(np.ones(6))
    for _ in range(5000):
        if not sources[0]._suspended.upper.goes_on:
            break
        time.sleep(1e-3)
    argument = np.ones(6) if verb == "combine" else np.ones(N)
    with pytest.raises(ValueError, match="Kernel 4 is not symmetric"):
        getattr(lazy, verb)(argument)


def test_blocks_may_lie_above_the_diagonal_so_they_settle_first(matrices):
    sources = PrecomputedBank().fit(tampered(matrices, (3, 30), 0.5)).sources()
    sources[0].defer(2)
    LazyGrams(sources, 6, N).combine(np.ones(6))
    with pytest.raises(ValueError, match="Kernel 4 is not symmetric"):
        next(sources[0].block(slice(0, 5), slice(0, N)))


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("n", [1, 70, 2100])
def test_energies_from_above_the_diagonal_are_those_of_the_matrices(rng, n, n_threads):
    matrices = [A @ A.T for A in rng.normal(size=(5, n, 4))]
    probes, v = rng.normal(size=(2, n)), rng.normal(size=n)
    v[::3] = 0.0
    sums, h = _core.UpperSums(matrices, probes, n_threads), np.empty(5)
    for _ in range(2):  # some rows are added up by then, or all of them
        sums.energies(v, h)
        np.testing.assert_allclose(h, [0.5 * v @ K @ v for K in matrices], rtol=1e-9, atol=1e-9)
    assert sums.finish() == _core.UpperSums(matrices, probes, 1).finish()
    assert not sums.goes_on
    alone = [np.triu(K) for K in matrices]
    _core.UpperSums(alone, probes, n_threads).energies(v, h)
    np.testing.assert_allclose(h, [0.5 * v @ K @ v for K in matrices], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_the_first_machine_may_be_measured_above_the_diagonal(matrices, y, storage, C):
    model = MKLClassifier("precomputed", learner=Hinge(C=C), geometry=LpBall(2.0), tol=1e-3, n_jobs=2)
    model.fit(matrices, y)
    optimum = conic_optimum(matrices, y, ("hinge", C), ("lp", 2.0)).value
    for record in model.history_:
        assert record.certificate.lower <= optimum * (1 + 1e-6)
    assert model.certificate_.lower <= optimum * (1 + 1e-7)
    assert optimum <= model.certificate_.upper * (1 + 1e-7)
