"""A start from a subsample: near the optimum, and never more than a start."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave import AlignedMKLClassifier, MKLClassifier, MKLRegressor
from kernelweave.errors import IndefiniteKernelError
from kernelweave.estimators import model as estimator_model
from kernelweave.geometry import BoxSimplex, LpBall, Simplex, Uniform
from kernelweave.gram import DenseGrams
from kernelweave.learners import (
    Discriminant,
    EpsilonInsensitive,
    Hinge,
    MarginDistribution,
    NuHinge,
    Square,
    SquaredHinge,
)
from kernelweave.solvers import BlockDescent, Newton, OuterState, Problem, subsample_warm_start, warm_start
from kernelweave.solvers.warm_start import representative_rows, subsample_size

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


@pytest.fixture
def large_enough(monkeypatch):
    """Let a subsample pay from as few samples as these tests have."""
    monkeypatch.setattr(warm_start, "subsample_size", lambda n, _: SIZE if n == N else 0)


def test_a_subsample_pays_from_a_thousand_samples_on_and_fits_into_128_megabytes():
    assert subsample_size(999, 8) == 0
    assert [subsample_size(n, 8) for n in (1000, 2000, 100_000)] == [250, 500, 1000]
    for n_kernels in (100, 1000, 3000):
        size = subsample_size(100_000, n_kernels)
        assert size >= 100
        assert 8 * n_kernels * size * (size + 1) / 2 <= 2**27 * 1.01
    assert subsample_size(100_000, 10_000) == 0  # so few would say little


@pytest.mark.usefixtures("large_enough")
@pytest.mark.parametrize("geometry", [LpBall(2.0), LpBall(1.3), BoxSimplex(nu=0.3)], ids=repr)
def test_the_start_is_nearer_than_the_geometrys_own(problem, geometry):
    p = replace(problem, geometry=geometry)
    eta = subsample_warm_start(p, Newton(tol=1e-3)).eta
    best = Newton(tol=1e-6).run(p).eta
    assert np.linalg.norm(eta - best) < 0.6 * np.linalg.norm(geometry.start(8) - best)


@pytest.mark.usefixtures("large_enough")
def test_a_start_carries_weights_and_no_coefficients_or_bounds(problem):
    start = subsample_warm_start(problem, Newton(tol=1e-3))
    assert start.coef is None
    assert start.known_evaluation(problem) is None


def test_each_sample_stands_for_its_share_of_all(problem, monkeypatch):
    """With every sample three times, one of each is the problem itself: the start is its solution."""
    monkeypatch.setattr(warm_start, "subsample_size", lambda *_: 80)
    few = slice(0, None, 3)
    X = np.repeat(np.arange(80), 3)
    grams = [K[few, few][np.ix_(X, X)] for K in (problem.grams.combine(e) for e in np.eye(8))]
    thrice = replace(problem, grams=DenseGrams(grams, centre=True), y=problem.y[few][X])
    weight = np.tile([3.0, 0.0, 0.0], 80)
    eta = subsample_warm_start(replace(thrice, weight=weight), Newton(tol=1e-6)).eta
    alone = DenseGrams([K[few, few] for K in grams])
    one = replace(problem, grams=alone, y=problem.y[few], weight=np.full(80, 3.0))
    np.testing.assert_allclose(eta, Newton(tol=3e-2).run(one).eta, atol=1e-6)  # roughly is enough


@pytest.mark.usefixtures("large_enough")
def test_weights_of_samples_keep_their_total(problem, rng, monkeypatch):
    weight = rng.random(N)
    seen = []
    run = Newton.run
    monkeypatch.setattr(
        Newton, "run", lambda self, p, *how, **more: seen.append(p) or run(self, p, *how, **more)
    )
    subsample_warm_start(replace(problem, weight=weight), Newton(tol=1e-3))
    assert seen[0].weight.sum() == pytest.approx(weight.sum())
    assert seen[0].grams.n_samples == SIZE


@pytest.mark.usefixtures("large_enough")
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
def test_several_columns_share_their_subsample(problem, learner):
    labels = np.arange(N) % 3
    Y = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    eta = subsample_warm_start(replace(problem, y=Y, learner=learner.for_columns()), Newton(tol=1e-3)).eta
    assert np.isfinite(LpBall(2.0).value(eta))


@pytest.mark.usefixtures("large_enough")
def test_what_cannot_be_solved_on_a_subsample_is_for_the_fit_on_all_to_explain(problem):
    K = problem.grams.combine(np.ones(8))
    p = replace(problem, grams=DenseGrams([K, -0.5 * K]))
    assert subsample_warm_start(p, Newton(tol=1e-3)) is None
    with pytest.raises(IndefiniteKernelError):
        Newton(tol=1e-3).run(p)


@pytest.mark.usefixtures("large_enough")
def test_where_nothing_can_be_learnt_from_a_subsample_there_is_no_start(problem, monkeypatch):
    newton = Newton(tol=1e-3)
    few = np.where(np.arange(N) < SIZE - 1, 1.0, 0.0)
    assert subsample_warm_start(replace(problem, weight=few), newton) is None
    assert subsample_warm_start(replace(problem, geometry=Uniform()), newton) is None
    assert subsample_warm_start(replace(problem, geometry=BoxSimplex(theta=1 / 8)), newton) is None
    share = 2 * min(np.mean(problem.y > 0), np.mean(problem.y < 0))
    sharp = replace(problem, learner=NuHinge(nu=share))  # the least class just gives enough
    fewer = representative_rows(problem.y, np.arange(N), SIZE - 1)
    assert 2 * min(np.mean(problem.y[fewer] > 0), np.mean(problem.y[fewer] < 0)) < share
    monkeypatch.setattr(warm_start, "subsample_size", lambda *_: SIZE - 1)
    assert subsample_warm_start(sharp, newton) is None


def test_few_samples_need_no_subsample(problem):
    assert subsample_warm_start(problem, Newton(tol=1e-3)) is None


@pytest.mark.usefixtures("large_enough")
def test_an_interrupt_ends_the_search_for_a_start(problem):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        subsample_warm_start(problem, Newton(tol=1e-3), interrupt)


def test_a_subsample_has_of_every_target_its_share(rng):
    y = np.where(rng.random(1000) < 0.02, 1.0, -1.0)  # rare: runs of samples are not like all
    for order in (np.arange(1000), np.argsort(y, kind="stable")):
        rows = representative_rows(y[order], np.arange(1000), 100)
        assert rows.size == 100
        assert (np.diff(rows) > 0).all()
        assert abs(np.mean(y[order][rows] > 0) - np.mean(y > 0)) <= 0.01
    real = rng.normal(size=500)
    chosen = representative_rows(real, np.arange(500), 50)
    np.testing.assert_allclose(
        np.quantile(real[chosen], [0.2, 0.5, 0.8]), np.quantile(real, [0.2, 0.5, 0.8]), atol=0.1
    )
    np.testing.assert_array_equal(representative_rows(real, np.array([3, 7]), 5), [3, 7])


def test_only_the_rows_offered_are_taken_and_several_columns_count(rng):
    kept = np.flatnonzero(rng.random(2000) < 0.9)
    labels = rng.integers(0, 3, size=2000)
    Y = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    rows = representative_rows(Y, kept, 300)
    assert rows.size == 300
    assert np.isin(rows, kept).all()
    np.testing.assert_allclose(
        np.bincount(labels[rows]) / 300, np.bincount(labels[kept]) / kept.size, atol=0.01
    )


@pytest.fixture
def starts(large_enough, monkeypatch):
    """What fits started from, problem by problem."""
    found = []

    def watched(*args):
        found.append(subsample_warm_start(*args))
        return found[-1]

    monkeypatch.setattr(estimator_model, "subsample_warm_start", watched)
    return found


@pytest.mark.parametrize("geometry", [LpBall(2.0), Simplex(), BoxSimplex(nu=0.3)], ids=repr)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bounds_are_those_of_all_samples(rng, starts, geometry, dtype):
    _, y, grams = data(rng)
    model = MKLClassifier("precomputed", geometry=geometry, tol=1e-3, dtype=dtype).fit(grams, y)
    assert [start is None for start in starts] == [False]
    sharp = Newton(tol=1e-7).run(Problem(DenseGrams(grams, centre=True), y, Hinge(C=1.0), geometry))
    assert model.certificate_.lower <= sharp.certificate.upper
    assert sharp.certificate.lower <= model.certificate_.upper
    assert model.duality_gap_ <= 1e-3


@pytest.mark.usefixtures("large_enough")
def test_a_solver_asked_for_by_name_starts_where_it_always_does(rng):
    _, y, grams = data(rng)
    own = BlockDescent(tol=1e-3).run(Problem(DenseGrams(grams, centre=True), y, Hinge(C=1.0), LpBall(2.0)))
    settings = {"geometry": LpBall(2.0), "tol": 1e-3, "dtype": "float64"}
    named = MKLClassifier("precomputed", solver=BlockDescent(), **settings).fit(grams, y)
    assert named.history_[0].certificate.upper == pytest.approx(own.history[0].certificate.upper)
    started = MKLClassifier("precomputed", **settings).fit(grams, y)
    assert started.history_[0].certificate.upper < own.history[0].certificate.upper


@pytest.mark.parametrize("learner", [Square(C=10.0), EpsilonInsensitive(C=10.0)], ids=repr)
@pytest.mark.parametrize("columns", [1, 2])
def test_what_is_learnt_of_real_numbers_starts_from_a_subsample_too(rng, starts, learner, columns):
    X, _, grams = data(rng)
    y = np.sin(X[:, 0]) if columns == 1 else np.sin(X[:, :2])
    model = MKLRegressor("precomputed", learner=learner, tol=1e-3).fit(grams, y)
    assert [start is None for start in starts] == [False]
    assert model.duality_gap_ <= 1e-3
    assert model.score(grams, y) > 0.8


def test_weights_that_are_not_learnt_have_no_start(rng, starts):
    _, y, grams = data(rng)
    AlignedMKLClassifier("precomputed").fit(grams, y)
    assert all(start is None for start in starts)


@pytest.mark.usefixtures("large_enough")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("during", ["the subsample", "the fit"])
def test_an_interrupt_leaves_a_model_of_every_class(rng, monkeypatch, n_jobs, during):
    X, _, grams = data(rng)
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    size, fired = SIZE if during == "the subsample" else N, []
    evaluate = OuterState.evaluate

    def interrupted(self, *args, **how):
        point = evaluate(self, *args, **how)
        if self.problem.grams.n_samples == size and not fired:
            fired.append(True)
            raise KeyboardInterrupt
        return point

    monkeypatch.setattr(OuterState, "evaluate", interrupted)
    model = MKLClassifier("precomputed", multiclass="per_class", tol=1e-9, n_jobs=n_jobs)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(grams, labels)
    assert fired
    assert model.kernel_weights_.shape == (3, 8)
    assert np.isfinite(model.decision_function(grams)).all()
