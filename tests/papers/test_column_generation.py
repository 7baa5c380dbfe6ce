"""Thousands of kernels: the answer of the few that count is the answer of all."""

import numpy as np
import pytest

import kernelweave.estimators.training as training
import kernelweave.solvers.column_generation as column_generation
from kernelweave import KernelBank, MKLClassifier, path
from kernelweave.bank.gram_bank import GramBank
from kernelweave.errors import IndefiniteKernelError
from kernelweave.geometry import BoxSimplex, RidgeSimplex, Simplex
from kernelweave.gram import DenseGrams, LazyGrams
from kernelweave.learners import Hinge
from kernelweave.solvers import ColumnGeneration, Newton


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch):
    monkeypatch.setattr(column_generation, "BATCH", 10)


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
    lazy = LazyGrams(fitted.sources(), len(fitted), 50, centre=True)
    result = ColumnGeneration(tol=1e-5).solve(lazy, y, Hinge(1.0), geometry)
    assert result.stopped == "converged"
    assert result.certificate.lower <= exact.certificate.upper
    assert exact.certificate.lower <= result.certificate.upper
    assert result.certificate.relative_gap <= 1e-5
    assert np.isfinite(geometry.value(result.eta))


def test_only_the_working_set_is_ever_held(problem, monkeypatch):
    fitted, y = problem
    taken = []
    original = LazyGrams.subset

    def watched(self, which):
        taken.append(which.size)
        return original(self, which)

    monkeypatch.setattr(LazyGrams, "subset", watched)
    lazy = LazyGrams(fitted.sources(), len(fitted), 50, centre=True)
    result = ColumnGeneration(tol=1e-3).solve(lazy, y, Hinge(1.0), Simplex())
    assert taken
    assert max(taken) < len(fitted) / 2
    assert np.count_nonzero(result.eta) < max(taken)


def test_a_stack_that_cannot_be_taken_apart_is_named(problem):
    fitted, y = problem
    bank = GramBank.hold(fitted, centre=True, tol=1e-3)

    class Closed:
        n_kernels, n_samples = bank.n_kernels, bank.n_samples

    with pytest.raises(TypeError, match="Closed does not offer; use Newton"):
        ColumnGeneration().solve(Closed(), y, Hinge(1.0), Simplex())


def test_an_indefinite_kernel_is_named_by_its_place_among_all(problem, monkeypatch):
    fitted, y = problem
    working = []
    original = LazyGrams.subset

    def watched(self, which):
        working.append(which)
        return original(self, which)

    def found_indefinite(self, *_, **__):
        raise IndefiniteKernelError(3, -1.0)  # the fourth kernel of the working set

    monkeypatch.setattr(LazyGrams, "subset", watched)
    monkeypatch.setattr(Newton, "run", found_indefinite)
    lazy = LazyGrams(fitted.sources(), len(fitted), 50, centre=True)
    with pytest.raises(IndefiniteKernelError) as caught:
        ColumnGeneration().solve(lazy, y, Hinge(1.0), Simplex())
    assert caught.value.index == working[0][3]


def test_searches_and_paths_over_many_kernels_do_not_hold_them_all(problem, monkeypatch):
    fitted, y = problem
    monkeypatch.setattr(training, "MANY_KERNELS", 50)
    walk = path(
        MKLClassifier("precomputed", geometry=BoxSimplex(), tol=1e-2),
        list(fitted.grams()),
        y,
        param="geometry__theta",
        values=[1.0 / len(fitted), 0.2],
    )
    assert all("anew" in model.storage_.how for model in walk.models)
