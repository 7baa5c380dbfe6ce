"""Thousands of kernels: the answer of the few that count is the answer of all."""

import numpy as np
import pytest
from sklearn.svm import SVC
from tests.reference.conic import assert_encloses, conic_optimum
from tests.reference.problems import random_problem

from kernelweave import KernelBank, MKLClassifier, path
from kernelweave.errors import IncompatiblePartsError, IndefiniteKernelError
from kernelweave.geometry import BoxSimplex, RidgeSimplex, Simplex
from kernelweave.gram import DenseGrams, StreamedGrams
from kernelweave.gram.plain import PlainGrams
from kernelweave.gram.source import matrix_sources
from kernelweave.learners import Hinge
from kernelweave.solvers import ColumnGeneration, Newton, OuterState, Problem
from kernelweave.solvers.certificate import dual_point


def streamed(Ks):
    return StreamedGrams(matrix_sources(Ks), len(Ks), len(Ks[0]))


def spread(svm, n):
    """Return the signed coefficients of all samples, of which scikit-learn keeps those of its support."""
    coef = np.zeros(n)
    coef[svm.support_] = svm.dual_coef_[0]
    return coef


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch):
    monkeypatch.setattr(ColumnGeneration, "batch", 10)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 100))
    y = np.where(X[:, 3] + X[:, 40] ** 2 - 1.0 + 0.3 * rng.normal(size=50) > 0, 1.0, -1.0)
    return KernelBank.per_feature(widths=[0.7], degrees=[]).fit(X), y


@pytest.mark.parametrize("geometry", [Simplex(), BoxSimplex(theta=0.1), RidgeSimplex(theta=0.2)])
def test_it_finds_what_newton_finds_on_all_kernels(problem, geometry):
    fitted, y = problem
    exact = Newton(tol=1e-7).solve(DenseGrams(list(fitted.grams())), y, Hinge(1.0), geometry)
    grams = StreamedGrams(fitted.sources(), len(fitted), 50)
    result = ColumnGeneration(tol=1e-5).solve(grams, y, Hinge(1.0), geometry)
    assert result.stopped == "converged"
    assert result.certificate.lower <= exact.certificate.upper
    assert exact.certificate.lower <= result.certificate.upper
    assert result.certificate.relative_gap <= 1e-5
    assert np.isfinite(geometry.value(result.eta))


def test_only_the_working_set_is_ever_held(problem, monkeypatch):
    fitted, y = problem
    taken = []
    original = StreamedGrams.subset

    def watched(self, which):
        taken.append(which.size)
        return original(self, which)

    monkeypatch.setattr(StreamedGrams, "subset", watched)
    grams = StreamedGrams(fitted.sources(), len(fitted), 50)
    result = ColumnGeneration(tol=1e-3).solve(grams, y, Hinge(1.0), Simplex())
    assert taken
    assert max(taken) < 0.6 * len(fitted)
    assert np.count_nonzero(result.eta) < max(taken)


def test_a_stack_that_cannot_be_taken_apart_is_named(problem):
    fitted, y = problem

    class Closed(PlainGrams):
        n_kernels, n_samples, sizes = len(fitted), 50, np.ones(len(fitted))
        combine = DenseGrams(list(fitted.grams())).combine
        matvecs = DenseGrams(list(fitted.grams())).matvecs

    with pytest.raises(IncompatiblePartsError, match="Closed cannot be split, use Newton"):
        ColumnGeneration().solve(Closed(), y, Hinge(1.0), Simplex())
    assert Newton(tol=1e-3).solve(Closed(), y, Hinge(1.0), Simplex()).stopped == "converged"


def test_an_indefinite_kernel_is_named_by_its_place_among_all(problem, monkeypatch):
    fitted, y = problem
    working = []
    original = StreamedGrams.subset

    def watched(self, which):
        working.append(which)
        return original(self, which)

    def found_indefinite(self, *_, **__):
        raise IndefiniteKernelError(3, -1.0)  # the fourth kernel of the working set

    monkeypatch.setattr(StreamedGrams, "subset", watched)
    monkeypatch.setattr(Newton, "run", found_indefinite)
    grams = StreamedGrams(fitted.sources(), len(fitted), 50)
    with pytest.raises(IndefiniteKernelError) as caught:
        ColumnGeneration().solve(grams, y, Hinge(1.0), Simplex())
    assert caught.value.index == working[0][3]


@pytest.mark.parametrize("seed", range(6))
def test_its_bounds_enclose_the_conic_optimum_at_kinks(monkeypatch, seed):
    monkeypatch.setattr(ColumnGeneration, "batch", 1)
    Ks, y = random_problem(seed, n=20, M=8)
    result = ColumnGeneration(tol=1e-6).solve(streamed(Ks), y, Hinge(1.0), Simplex())
    optimum = conic_optimum(Ks, y, ("hinge", 1.0), ("simplex",)).value
    assert_encloses(result.certificate, optimum)
    assert result.certificate.relative_gap <= 1e-6


def test_what_other_coefficients_prove_is_no_more_and_no_less_than_their_dual_objective():
    Ks, y = random_problem(4, n=40, M=5)
    optimum = conic_optimum(Ks, y, ("hinge", 1.0), ("simplex",)).value
    svms = [SVC(C=1.0, kernel="precomputed").fit(K, y) for K in Ks]
    for coef in [np.mean([spread(svm, 40) for svm in svms], axis=0), spread(svms[0], 40)]:
        state = OuterState(Problem(streamed(Ks), y, Hinge(1.0), Simplex()), tol=1e-6, max_iter=10)
        state.evaluate(np.array([0.0, 1.0, 0.0, 0.0, 0.0]), inner_tol=1e-3)
        before = state.certificate.lower
        point = dual_point(state.problem, state.problem.grams, coef)
        state.add_dual_point(point)
        np.testing.assert_allclose(point.h, [0.5 * coef @ K @ coef for K in Ks], rtol=1e-9)
        proved = np.abs(coef).sum() - max(0.5 * coef @ K @ coef for K in Ks)
        assert state.certificate.lower >= max(before, proved) * (1 - 1e-9)
        assert state.certificate.lower <= optimum * (1 + 1e-8)


def test_at_a_kink_the_mixture_bounds_the_optimum_better_than_the_solution(monkeypatch):
    monkeypatch.setattr(ColumnGeneration, "batch", 1)
    gained = []
    original = OuterState.add_dual_point

    def watched(self, point):
        before = self.certificate.lower
        original(self, point)
        if point.coef is not self._coef:  # not that of an evaluation
            gained.append(self.certificate.lower / before - 1.0)

    monkeypatch.setattr(OuterState, "add_dual_point", watched)
    for seed in range(30):
        Ks, y = random_problem(seed, n=12, M=10)
        ColumnGeneration(tol=1e-6).solve(streamed(Ks), y, Hinge(100.0), Simplex())
    assert max(gained) > 1e-3


@pytest.mark.parametrize("solver", [None, ColumnGeneration(), Newton()])
def test_searches_and_paths_over_many_kernels_do_not_hold_them_all(solver):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 1001))
    walk = path(
        MKLClassifier(
            KernelBank.per_feature(widths=[0.7], degrees=[]), geometry=BoxSimplex(), solver=solver, tol=1e-2
        ),
        X,
        np.sign(X[:, 3]),
        param="geometry__theta",
        values=[1.0 / 60, 0.2],
    )
    held = [model.storage_.how for model in walk.models]
    assert all(("never stored" in how) != isinstance(solver, Newton) for how in held)
