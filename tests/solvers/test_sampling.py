"""A start from some of the samples: near the optimum, and never more than a start."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave import AlignedMKLClassifier, MKLClassifier, MKLRegressor
from kernelweave.errors import IndefiniteKernelError
from kernelweave.estimators import training
from kernelweave.geometry import BoxSimplex, LpBall, Simplex, Uniform
from kernelweave.gram import DenseGrams
from kernelweave.gram import memory as of_memory
from kernelweave.learners import (
    Discriminant,
    EpsilonInsensitive,
    Hinge,
    MarginDistribution,
    NuHinge,
    Square,
    SquaredHinge,
)
from kernelweave.solvers import BlockDescent, Newton, Problem, guess
from kernelweave.solvers.problem import Walk
from kernelweave.solvers.sampling import spread

N, SIZE = 240, 60


def data(rng, n=N):
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 - 1 + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    grams = [np.exp(-((x - x[:, None]) ** 2) / (2 * w**2)) for x in X.T for w in (0.5, 2.0)]
    return X, y, grams


@pytest.fixture
def problem(rng):
    _, y, grams = data(rng)
    return Problem(DenseGrams(grams, centre=True), y, Hinge(C=1.0), LpBall(2.0))


@pytest.mark.parametrize("geometry", [LpBall(2.0), LpBall(1.3), BoxSimplex(nu=0.3)], ids=repr)
def test_the_start_is_nearer_than_the_geometrys_own(problem, geometry):
    p = replace(problem, geometry=geometry)
    eta = guess(p, Newton(tol=1e-3), SIZE).eta
    best = Newton(tol=1e-6).run(p).eta
    assert np.linalg.norm(eta - best) < 0.6 * np.linalg.norm(geometry.start(8) - best)


def test_a_sample_stands_for_all(problem):
    """With every sample three times, one of each is the problem itself: the guess is its solution."""
    few = slice(0, None, 3)
    X = np.repeat(np.arange(80), 3)
    grams = [K[few, few][np.ix_(X, X)] for K in (problem.bank.combine(e) for e in np.eye(8))]
    thrice = replace(problem, bank=DenseGrams(grams, centre=True), y=problem.y[few][X])
    weight = np.tile([3.0, 0.0, 0.0], 80)
    eta = guess(replace(thrice, weight=weight), Newton(tol=1e-6), 80).eta
    one = replace(
        problem, bank=DenseGrams([K[few, few] for K in grams]), y=problem.y[few], weight=np.full(80, 3.0)
    )
    expected = Newton(tol=Newton.rough).run(one)
    np.testing.assert_allclose(eta, expected.eta, atol=1e-6)


def test_weights_of_samples_keep_their_total(problem, rng, monkeypatch):
    weight = rng.random(N)
    seen = []
    run = Newton.run
    monkeypatch.setattr(Newton, "run", lambda self, p, **how: seen.append(p) or run(self, p, **how))
    guess(replace(problem, weight=weight), Newton(tol=1e-3), SIZE)
    assert seen[0].weight.sum() == pytest.approx(weight.sum())
    assert seen[0].bank.n_samples == SIZE


@pytest.mark.parametrize(
    "learner",
    [
        Hinge(),
        NuHinge(nu=0.3),
        SquaredHinge(),
        MarginDistribution(),
        EpsilonInsensitive(),
        Square(),
        Discriminant(),
    ],
    ids=repr,
)
def test_several_columns_share_their_sample(problem, learner):
    labels = np.arange(N) % 3
    Y = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    eta = guess(replace(problem, y=Y, learner=learner.for_columns()), Newton(tol=1e-3), SIZE).eta
    assert np.isfinite(LpBall(2.0).value(eta))


def test_what_cannot_be_solved_on_a_sample_is_for_the_walk_over_all_to_explain(problem):
    K = problem.bank.combine(np.ones(8))
    p = replace(problem, bank=DenseGrams([K, -0.5 * K]))
    assert guess(p, Newton(tol=1e-3), SIZE) is None
    with pytest.raises(IndefiniteKernelError):
        Newton(tol=1e-3).run(p)


def test_where_nothing_can_be_learnt_from_a_sample_there_is_no_guess(problem):
    newton = Newton(tol=1e-3)
    few = np.where(np.arange(N) < SIZE - 1, 1.0, 0.0)
    assert guess(replace(problem, weight=few), newton, SIZE) is None
    assert guess(replace(problem, geometry=Uniform()), newton, SIZE) is None
    assert guess(replace(problem, geometry=BoxSimplex(theta=1 / 8)), newton, SIZE) is None
    assert guess(problem, newton, 0) is None
    share = 2 * min(np.mean(problem.y > 0), np.mean(problem.y < 0))
    sharp = replace(problem, learner=NuHinge(nu=share))  # the least class just gives enough
    fewer = spread(problem.y, np.arange(N), SIZE - 1)
    assert 2 * min(np.mean(problem.y[fewer] > 0), np.mean(problem.y[fewer] < 0)) < share
    assert guess(sharp, newton, SIZE - 1) is None

    @dataclass
    class Opaque:
        n_samples: int = N
        n_kernels: int = 8

    assert guess(replace(problem, bank=Opaque()), newton, SIZE) is None


def test_an_interrupt_ends_the_fit(problem):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guess(problem, Newton(tol=1e-3), SIZE, interrupt)


def test_a_sample_has_of_every_target_its_share(rng):
    y = np.where(rng.random(1000) < 0.02, 1.0, -1.0)  # rare: runs of samples are not like all
    for order in (np.arange(1000), np.argsort(y, kind="stable")):
        rows = spread(y[order], np.arange(1000), 100)
        assert rows.size == 100
        assert (np.diff(rows) > 0).all()
        assert abs(np.mean(y[order][rows] > 0) - np.mean(y > 0)) <= 0.01
    real = rng.normal(size=500)  # a run is a draw of its own: a median of 50 is off by 0.18 as a rule
    chosen = spread(real, np.arange(500), 50)
    np.testing.assert_allclose(
        np.quantile(real[chosen], [0.2, 0.5, 0.8]), np.quantile(real, [0.2, 0.5, 0.8]), atol=0.25
    )
    np.testing.assert_array_equal(spread(real, np.array([3, 7]), 5), [3, 7])


@pytest.mark.parametrize("sort", [False, True])
def test_samples_are_taken_in_runs_where_their_targets_are_like_all(rng, sort):
    y = np.where(rng.random(2000) < 0.4, 1.0, -1.0)
    y = np.sort(y) if sort else y
    kept = np.flatnonzero(rng.random(2000) < 0.9)
    rows = spread(y, kept, 500)
    places = np.searchsorted(kept, rows)
    assert rows.size == 500
    assert np.isin(rows, kept).all()
    assert (np.diff(places) > 0).all()
    assert np.mean(np.diff(places) == 1) > 0.9
    assert abs(np.mean(y[rows]) - np.mean(y[kept])) <= 0.15 * np.std(y[kept])
    several = np.column_stack([y, -y, rng.normal(size=2000)])
    assert spread(several, kept, 500).size == 500
    assert spread(y, kept[:20], 18).size == 18  # not as many runs


@pytest.fixture
def large_enough(monkeypatch):
    monkeypatch.setattr(of_memory, "WORTH", N)
    monkeypatch.setattr(of_memory, "FEWEST", SIZE)
    monkeypatch.setattr(of_memory, "FEWEST_LEADING", SIZE)
    monkeypatch.setattr(of_memory, "MOST_LEADING", SIZE)


@pytest.fixture
def guesses(large_enough, monkeypatch):
    """What was guessed, problem by problem."""
    found = []
    monkeypatch.setattr(training, "guess", lambda *args: found.append(guess(*args)) or found[-1])
    return found


@pytest.mark.parametrize("geometry", [LpBall(2.0), Simplex(), BoxSimplex(nu=0.3)], ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bounds_are_those_of_all_samples(rng, guesses, geometry, dtype):
    _, y, grams = data(rng)
    model = MKLClassifier("precomputed", geometry=geometry, tol=1e-3, dtype=dtype).fit(grams, y)
    assert [eta is None for eta in guesses] == [False]
    sharp = Newton(tol=1e-7).run(Problem(DenseGrams(grams, centre=True), y, Hinge(C=1.0), geometry))
    assert model.certificate_.lower <= sharp.certificate.upper
    assert sharp.certificate.lower <= model.certificate_.upper
    assert model.duality_gap_ <= 1e-3


def test_a_solver_asked_for_by_name_starts_where_it_always_does(rng, large_enough):
    _, y, grams = data(rng)
    own = BlockDescent(tol=1e-3).run(Problem(DenseGrams(grams, centre=True), y, Hinge(C=1.0), LpBall(2.0)))
    settings = {"geometry": LpBall(2.0), "tol": 1e-3, "dtype": "float64"}
    named = MKLClassifier("precomputed", solver=BlockDescent(), **settings).fit(grams, y)
    assert named.history_[0].certificate.upper == pytest.approx(own.history[0].certificate.upper)
    guessed = MKLClassifier("precomputed", **settings).fit(grams, y)
    assert guessed.history_[0].certificate.upper < own.history[0].certificate.upper


@pytest.mark.parametrize("learner", [Square(C=10.0), EpsilonInsensitive(C=10.0)], ids=repr)
@pytest.mark.parametrize("columns", [1, 2])
def test_what_is_learnt_of_real_numbers_looks_ahead_too(rng, guesses, learner, columns):
    X, _, grams = data(rng)
    y = np.sin(X[:, 0]) if columns == 1 else np.sin(X[:, :2])
    model = MKLRegressor("precomputed", learner=learner, tol=1e-3).fit(grams, y)
    assert [eta is None for eta in guesses] == [False]
    assert model.duality_gap_ <= 1e-3
    assert model.score(grams, y) > 0.8


def test_weights_that_are_not_learnt_are_not_guessed(rng, guesses):
    _, y, grams = data(rng)
    AlignedMKLClassifier("precomputed").fit(grams, y)
    assert all(eta is None for eta in guesses)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("during", ["the guess", "the walk"])
def test_an_interrupt_leaves_a_model_of_every_class(rng, large_enough, monkeypatch, n_jobs, during):
    X, _, grams = data(rng)
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    size, fired = SIZE if during == "the guess" else N, []
    visit = Walk.visit

    def interrupted(self, *args, **how):
        point = visit(self, *args, **how)
        if self.problem.bank.n_samples == size and not fired:
            fired.append(True)
            raise KeyboardInterrupt
        return point

    monkeypatch.setattr(Walk, "visit", interrupted)
    model = MKLClassifier("precomputed", multiclass="per_class", tol=1e-9, n_jobs=n_jobs)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(grams, labels)
    assert fired
    assert model.kernel_weights_.shape == (3, 8)
    assert np.isfinite(model.decision_function(grams)).all()


@pytest.mark.parametrize(
    ("geometry", "looks"),
    [(Simplex(), True), (BoxSimplex(theta=0.5), True), (BoxSimplex(nu=0.3), False), (LpBall(2.0), False)],
    ids=repr,
)
def test_few_samples_are_asked_where_few_kernels_may_be_left(rng, monkeypatch, geometry, looks):
    asked = []
    monkeypatch.setattr(training, "guess", lambda *args: asked.append(args[2]))
    monkeypatch.setattr(of_memory, "EARLY", 40)
    monkeypatch.setattr(of_memory, "ENTRIES", 1)
    X = rng.normal(size=(60, 20))
    grams = [np.outer(x, x) for x in X.T]
    problem = Problem(DenseGrams(grams, centre=True), np.sign(X[:, 0]), Hinge(), geometry)
    training.first_guess(problem, Newton(tol=1e-3), None)
    training.first_guess(problem, BlockDescent(tol=1e-3), None)
    assert asked == [15 if looks else 0, 0]
