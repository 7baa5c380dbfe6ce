"""Where rounding opens a gap by little the walk goes on on the rounded kernels, not in float64."""

from dataclasses import replace

import numpy as np
import pytest
from tests.reference.conic import conic_optimum

from kernelweave import MKLClassifier
from kernelweave.bank.gram_bank import GramBank
from kernelweave.estimators import training
from kernelweave.geometry import LpBall, Simplex
from kernelweave.gram import MatrixSource, PackedGrams
from kernelweave.learners import Hinge
from kernelweave.solvers import Certificate, Newton, Problem
from kernelweave.solvers.verification import Bounds

N, TOL = 80, 1e-3


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(N, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 - 1 + 0.5 * rng.normal(size=N) > 0, 1.0, -1.0)
    return [np.exp(-((x - x[:, None]) ** 2) / width) for x in X.T for width in (0.1, 1.0, 10.0)], y


@pytest.fixture
def in_float32(monkeypatch):
    """Have the small problem held in float32, and tell when float64 is asked for."""
    monkeypatch.setattr("kernelweave.gram.choose.SMALL", 0)
    asked = []

    def refined(self):
        asked.append(self)

    monkeypatch.setattr(GramBank, "refined", refined)
    return asked


def opened_by(monkeypatch, share, times=1):
    """Have the first bounds of stored kernels say that rounding has opened the gap by a share of tol."""
    usual, calls = training.widened, []

    def told(p, result, tol=0.0):
        bounds = usual(p, result, tol)
        calls.append(result)
        if len(calls) > times:
            return bounds
        upper = bounds.certificate.upper
        gap = result.certificate.relative_gap + share * TOL
        return Bounds(bounds.machine, Certificate(upper, upper * (1.0 - max(gap, (1 + 1e-9) * TOL))))

    monkeypatch.setattr(training, "widened", told)
    return calls


def fitted(problem, geometry, **how):
    return MKLClassifier("precomputed", geometry=geometry, learner=Hinge(C=10.0), tol=TOL, **how).fit(
        *problem
    )


@pytest.mark.parametrize(("geometry", "name"), [(LpBall(2.0), ("lp", 2.0)), (Simplex(), ("simplex",))])
def test_a_gap_opened_by_little_is_closed_where_it_is(problem, in_float32, monkeypatch, geometry, name):
    plain = fitted(problem, geometry)
    calls = opened_by(monkeypatch, 0.5)
    monkeypatch.setattr(training, "LITTLE", 0.9)  # a walk that ends far below tol is opened by more than 0.7
    model = fitted(problem, geometry)
    assert len(calls) == 1
    assert in_float32 == []
    assert model.duality_gap_ <= TOL
    assert model.n_iter_ >= plain.n_iter_
    assert len(model.history_) > len(plain.history_)
    assert model.n_iter_ == sum(record.solved for record in model.history_)
    optimum = conic_optimum(problem[0], problem[1], ("hinge", 10.0), name).value
    assert model.certificate_.lower <= optimum * (1 + 1e-7)
    assert optimum <= model.certificate_.upper * (1 + 1e-7)


@pytest.mark.parametrize(("share", "goes_on"), [(0.69, True), (0.71, False)])
def test_little_is_seven_tenths_of_the_tolerance(problem, monkeypatch, share, goes_on):
    matrices, y = problem
    stack = PackedGrams.pack([MatrixSource(matrices)], len(matrices), N)
    asked, solver = Problem(stack, y, Hinge(C=10.0), Simplex()), Newton(tol=TOL)
    result = solver.run(asked)
    tol = 2.0 * result.certificate.relative_gap
    upper = result.certificate.upper
    bounds = Bounds(result.machine, Certificate(upper, upper * (1.0 - (0.5 + share) * tol)))
    monkeypatch.setattr(training, "widened", lambda *_: bounds)
    further, told = training._gone_on(result, asked, solver, tol, None)
    assert (len(further.history) > len(result.history)) == goes_on
    assert (told is None) == goes_on


def test_a_gap_opened_by_much_is_not_walked_after(problem, in_float32, monkeypatch):
    plain = fitted(problem, LpBall(2.0))
    opened_by(monkeypatch, 0.9)
    model = fitted(problem, LpBall(2.0))
    assert model.n_iter_ == plain.n_iter_  # the kernels themselves were read, and closed it
    assert len(model.history_) == len(plain.history_)
    assert model.duality_gap_ <= TOL


def test_it_goes_on_for_no_more_machines_than_may_be_solved(problem, in_float32, monkeypatch):
    enough = fitted(problem, LpBall(2.0)).n_iter_
    opened_by(monkeypatch, 0.5)
    model = fitted(problem, LpBall(2.0), max_iter=enough)
    assert model.n_iter_ == enough
    assert fitted(problem, LpBall(2.0), max_iter=enough + 5).n_iter_ <= enough + 5


def test_bounds_are_widened_by_what_rounding_may_have_done(problem, in_float32, monkeypatch):
    seen = []
    usual = training.widened

    def watched(p, result, tol=0.0):
        seen.append((result, usual(p, result, tol)))
        return seen[-1][1]

    monkeypatch.setattr(training, "widened", watched)
    fitted(problem, LpBall(2.0))
    [(result, bounds)] = seen
    assert bounds.certificate.upper >= result.certificate.upper * (1 - 1e-6)
    assert bounds.certificate.lower <= result.certificate.lower
    assert bounds.certificate.lower < bounds.certificate.upper
    optimum = conic_optimum(problem[0], problem[1], ("hinge", 10.0), ("lp", 2.0)).value
    assert bounds.certificate.lower <= optimum * (1 + 1e-7)
    assert optimum <= bounds.certificate.upper * (1 + 1e-7)
    assert replace(result, certificate=bounds.certificate).certificate.relative_gap <= TOL
