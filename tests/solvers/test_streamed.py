"""Descent on kernels that are never stored: bounds hold whatever is cut short, left out or known beforehand."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from tests.reference.conic import assert_encloses, conic_optimum, conic_optimum_shared
from tests.reference.problems import gaussian
from tests.reference.targets import target_optimum

from kernelweave import Entry, KernelBank, Views
from kernelweave.errors import DegenerateSamplesError, IncompatiblePartsError
from kernelweave.geometry import (
    BoxSimplex,
    ElasticNetBall,
    GroupBox,
    LpBall,
    RidgeSimplex,
    Simplex,
    Uniform,
)
from kernelweave.gram import DenseGrams, StreamedGrams
from kernelweave.kernels import Centering, Gaussian, Laplacian, Linear, Polynomial, UnitDiagonal, UnitTrace
from kernelweave.learners import (
    EpsilonInsensitive,
    Hinge,
    NuHinge,
    OneClass,
    OneVsRest,
    Square,
    SquaredHinge,
)
from kernelweave.solvers import Newton, Problem, StreamedDescent, WarmStart, certify

ENTRIES = [
    Entry(Gaussian(width=0.5), columns=[0, 1, 2]),
    Entry(Gaussian(width=3.0), columns=[0, 1, 2]),
    Entry(Laplacian(gamma=0.7), columns=[1, 2]),
    Entry(Polynomial(degree=2, gamma=0.5), columns=[0, 3]),
    Entry(Linear(), columns=[0, 1, 2, 3]),
    Entry(Gaussian(width=1.0), columns=[3]),
]
SETS = {
    "simplex": (Simplex(), ("simplex",)),
    "box": (BoxSimplex(theta=0.4), ("box", 0.4)),
    "lp 1.5": (LpBall(1.5), ("lp", 1.5)),
    "lp 2": (LpBall(2.0), ("lp", 2.0)),
    "elastic": (ElasticNetBall(v=0.5), ("elastic", 0.5)),
    "ridge": (RidgeSimplex(theta=2.0), ("ridge", 2.0)),
    "group": (GroupBox(list("aabbbc"), theta=0.6), ("group", list("aabbbc"), 0.6)),
    "uniform": (Uniform(), ("uniform",)),
}
LEARNERS = {
    "hinge": Hinge(C=1.0),
    "nu": NuHinge(nu=0.4),
    "squared": SquaredHinge(C=2.0),
    "epsilon": EpsilonInsensitive(C=1.0, epsilon=0.2),
    "one class": OneClass(nu=0.3),
    "square": Square(C=1.0),
}
each_set = pytest.mark.parametrize("set_", SETS)
each_learner = pytest.mark.parametrize("name", LEARNERS)


def table(seed, n):
    """Return a table with four columns, and a score that no single kernel explains."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.5 * X[:, 2] * X[:, 3] + 0.4 * rng.normal(size=n)


def target(learner, score):
    """Return what a learner learns from: the score, its sign, columns of classes, or nothing."""
    if isinstance(learner, OneVsRest):
        classes = np.digitize(score, np.quantile(score, [0.3, 0.7]))
        return np.where(classes[:, None] == np.arange(3), 1.0, -1.0)
    if isinstance(learner, OneClass):
        return np.ones(score.size)
    return (
        score
        if isinstance(learner, EpsilonInsensitive | Square)
        else np.where(score > np.median(score), 1.0, -1.0)
    )


def by_definition(X):
    """Return the matrices of ENTRIES in float64, written down from their formulas."""
    D = np.sqrt(((X[:, None, [1, 2]] - X[None, :, [1, 2]]) ** 2).sum(axis=2))
    return [
        gaussian(X[:, :3], 0.5),
        gaussian(X[:, :3], 3.0),
        np.exp(-np.sqrt(0.7) * D),
        (0.5 * X[:, [0, 3]] @ X[:, [0, 3]].T + 1.0) ** 2,
        X @ X.T,
        gaussian(X[:, [3]], 1.0),
    ]


def streamed(fitted, dtype="float32", n_threads=1):
    return StreamedGrams(fitted.sources(), len(fitted), fitted.n_samples, dtype=dtype, n_threads=n_threads)


def problem_of(learner, geometry, seed, n, *, X=None, y=None, weight=None, **how):
    """Return a table with a problem on its kernels; ``X`` and ``y`` stand for those of the seed."""
    drawn, score = table(seed, n)
    X = drawn if X is None else X
    y = target(learner, score) if y is None else y
    return X, Problem(streamed(KernelBank(ENTRIES).fit(X), **how), y, learner, geometry, weight)


def solver(tol=1e-4, **how):
    """Return a solver that moves eighty coefficients at a time, so that small tables have levels and blocks too."""
    return StreamedDescent(tol=tol, **{"n_coarse": 60, "block_size": 80} | how)


def solve(problem, tol=1e-4, start=None, progress=None, **how):
    """Return the result as the solver leaves it, and with the certificate of the kernels as given."""
    result = solver(tol, **how).run(problem, start, progress)
    return result, certify(problem, result, problem.grams.in_float64, tol)


def dense_bracket(Ks, problem):
    """Return bounds on the optimum from matrices in float64 and another solver."""
    p = problem
    grams = DenseGrams(Ks, centre=p.learner.has_bias)
    return (
        Newton(tol=1e-8, max_iter=300).solve(grams, p.y, p.learner, p.geometry, weight=p.weight).certificate
    )


def assert_agree(certificate, reference, accuracy=1e-9):
    """Both enclose the optimum, so that neither may lie wholly above or below the other."""
    slack = accuracy * abs(reference.upper)
    assert certificate.lower <= reference.upper + slack
    assert certificate.upper >= reference.lower - slack


def checked(X, problem, tol=1e-4, start=None, progress=None, accuracy=1e-9, **how):
    """Return what `solve` does, once its certificate agrees with matrices in float64."""
    result, certified = solve(problem, tol, start, progress, **how)
    assert_agree(certified.certificate, dense_bracket(by_definition(X), problem), accuracy)
    return result, certified


# -- (1) certificates


@each_set
@each_learner
def test_bounds_enclose_the_optimum_of_matrices_in_float64(name, set_):
    learner, (geometry, _) = LEARNERS[name], SETS[set_]
    X, problem = problem_of(learner, geometry, len(name) + len(set_), 150 + 7 * len(name) + 5 * len(set_))
    result, certified = checked(X, problem)
    assert certified.certificate.relative_gap <= 1e-4
    assert result.stopped == certified.stopped == "converged"
    assert np.isfinite(geometry.value(result.eta))
    assert certified.history[-1].certificate == certified.certificate


@pytest.mark.parametrize(
    ("learner", "named"),
    [
        (Hinge(C=1.0), ("hinge", 1.0)),
        (NuHinge(nu=0.4), ("nu", 0.4)),
        (SquaredHinge(C=2.0), ("squared", 2.0)),
        (EpsilonInsensitive(C=1.0, epsilon=0.2), ("epsilon", 1.0, 0.2)),
        (OneClass(nu=0.3), ("one class", 0.3)),
        (Square(C=1.0), ("square", 1.0)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("set_", ["simplex", "lp 2", "ridge"])
def test_bounds_enclose_the_conic_optimum(learner, named, set_):
    geometry, named_set = SETS[set_]
    X, score = table(3, 150)
    y, Ks = target(learner, score), by_definition(X)
    problem = Problem(streamed(KernelBank(ENTRIES).fit(X)), y, learner, geometry)
    oracle = conic_optimum if named[0] in ("hinge", "nu", "squared") else target_optimum
    _, certified = solve(problem, tol=1e-3)
    assert_encloses(certified.certificate, oracle(Ks, y, named, named_set).value, 1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("C", [0.01, 0.1, 10.0, 1000.0])
@pytest.mark.parametrize("kind", [Hinge, SquaredHinge, EpsilonInsensitive, Square])
def test_bounds_hold_whatever_an_error_costs(kind, C, dtype):
    learner = kind(C=C)
    X, score = table(11, 220)
    problem = Problem(
        streamed(KernelBank(ENTRIES).fit(X), dtype), target(learner, score), learner, LpBall(2.0)
    )
    _, certified = checked(X, problem, tol=1e-3, accuracy=1e-7)
    if C <= 10.0:
        assert certified.certificate.relative_gap <= 1e-3


@each_learner
def test_samples_of_weight_zero_are_none_and_others_count_by_their_weight(name, rng):
    learner = LEARNERS[name]
    X, score = table(5, 260)
    y, weight = target(learner, score), rng.choice([0.0, 0.3, 1.0, 5.0], size=260)
    problem = Problem(streamed(KernelBank(ENTRIES).fit(X)), y, learner, LpBall(1.5), weight)
    _, certified = checked(X, problem)
    assert certified.stopped == "converged"
    assert not certified.inner.coef[weight == 0.0].any()
    used = weight > 0.0
    alone = replace(problem, y=y[used], weight=weight[used])
    assert_agree(certified.certificate, dense_bracket(by_definition(X[used]), alone))


@each_learner
def test_a_weight_of_two_is_a_sample_twice(name):
    learner = LEARNERS[name]
    X, score = table(6, 200)
    y, times = target(learner, score), 1 + np.arange(200) % 2
    weighted = Problem(streamed(KernelBank(ENTRIES).fit(X)), y, learner, Simplex(), times.astype(np.float64))
    repeated = Problem(
        streamed(KernelBank(ENTRIES).fit(np.repeat(X, times, axis=0))),
        np.repeat(y, times),
        learner,
        Simplex(),
    )
    assert_agree(solve(weighted)[1].certificate, solve(repeated)[1].certificate)


@each_learner
@pytest.mark.parametrize("spoilt", ["repeated rows", "constant columns", "far away"])
def test_bounds_hold_on_degenerate_tables(name, spoilt):
    learner = LEARNERS[name]
    X, score = table(7, 240)
    if spoilt == "repeated rows":
        X, score = X[np.arange(240) % 60], score[np.arange(240) % 60]
    elif spoilt == "constant columns":
        X[:, 3], X[:, 1] = 2.5, 0.0
    else:
        X = X + 30.0
    problem = Problem(
        streamed(KernelBank(ENTRIES).fit(X)), target(learner, score), learner, RidgeSimplex(1.0)
    )
    checked(X, problem, tol=1e-3, accuracy=1e-7)


@pytest.mark.parametrize("learner", [Hinge(C=1.0), SquaredHinge(C=2.0), NuHinge(nu=0.2)], ids=repr)
@pytest.mark.parametrize("set_", ["simplex", "lp 2", "box"])
def test_several_columns_share_their_weights(learner, set_):
    learner, (geometry, named_set) = OneVsRest(learner), SETS[set_]
    X, problem = problem_of(learner, geometry, 8, 160)
    _, certified = checked(X, problem)
    assert certified.stopped == "converged"
    assert certified.inner.coef.shape == (160, 3)
    if learner.learner == Hinge(C=1.0) and set_ == "lp 2":
        optimum = conic_optimum_shared(by_definition(X), problem.y, ("hinge", 1.0), named_set).value
        assert_encloses(certified.certificate, optimum, 1e-7)


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_several_real_columns_share_their_weights(C):
    learner = OneVsRest(EpsilonInsensitive(C=C, epsilon=0.1))
    X, score = table(9, 180)
    Y = np.column_stack([score, X[:, 0]])
    problem = Problem(streamed(KernelBank(ENTRIES).fit(X)), Y, learner, Simplex())
    _, certified = checked(X, problem, tol=1e-3)
    assert certified.certificate.relative_gap <= 1e-3


@pytest.mark.parametrize("scaling", [UnitTrace(), UnitDiagonal(), Centering(), (Centering(), UnitTrace())])
def test_views_and_scalings_are_streamed_too(scaling):
    X, score = table(10, 200)
    views = Views({"a": X[:, :2], "b": X[:, 2:]})
    bank = KernelBank.per_view(
        [Gaussian(width=1.0), Polynomial(degree=2, gamma=0.3), Linear()], scaling=scaling
    )
    fitted = bank.fit(views)
    problem = Problem(streamed(fitted), target(Hinge(), score), Hinge(C=1.0), Simplex())
    _, certified = solve(problem)
    Ks = []
    for part in (X[:, :2], X[:, 2:]):
        for K in (gaussian(part, 1.0), (0.3 * part @ part.T + 1.0) ** 2, part @ part.T):
            for one in scaling if isinstance(scaling, tuple) else (scaling,):
                K = scaled(K, one)
            Ks.append(K)
    assert certified.stopped == "converged"
    assert_agree(certified.certificate, dense_bracket(Ks, problem), accuracy=1e-8)


def scaled(K, scaling):
    """Return a matrix scaled by the definition."""
    if isinstance(scaling, UnitDiagonal):
        return K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    if isinstance(scaling, Centering):
        P = np.eye(len(K)) - 1.0 / len(K)
        return P @ K @ P
    return K / np.trace(K)


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_a_few_hundred_more_samples_go_through_several_levels(C):
    X, problem = problem_of(Hinge(C=C), Simplex(), 12, 700)
    sizes = [rows.size for rows in solver()._levels(problem)]
    assert sizes[0] == 60
    assert sizes[-1] == 700
    assert len(sizes) >= 3
    _, certified = checked(X, problem)
    assert certified.stopped == "converged"


def test_levels_are_nested_leave_out_samples_without_weight_and_hold_every_class(rng):
    X, _score = table(13, 400)
    weight = rng.choice([0.0, 1.0], size=400)
    y = np.where(np.arange(400) < 20, 1.0, -1.0)
    problem = Problem(streamed(KernelBank(ENTRIES).fit(X)), y, Hinge(), Simplex(), weight)
    levels = solver(n_coarse=40)._levels(problem)
    for smaller, larger in itertools.pairwise(levels):
        assert set(smaller) <= set(larger)
        assert (np.diff(smaller) > 0).all()
    for rows in levels[:-1]:
        assert weight[rows].all()
        assert {-1.0, 1.0} == set(y[rows])
    assert levels[-1].size == 400


@pytest.mark.parametrize("R", [1e2, 1e5])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_bounds_hold_where_float32_sees_little_of_the_distances(R, C):
    X, score = table(0, 100)
    X = (
        np.repeat(X, 4, axis=0) + np.where(np.arange(400) % 2, R, -R)[:, None]
    )  # two groups far apart, with copies
    y = np.repeat(target(Hinge(), score), 4)
    widths = (1.0, 3.0)
    problem = Problem(
        streamed(KernelBank([Gaussian(width=w) for w in widths]).fit(X)), y, Hinge(C=C), LpBall(2.0)
    )
    _, certified = solve(problem)
    assert_agree(certified.certificate, dense_bracket([gaussian(X, w) for w in widths], problem))


@pytest.mark.parametrize("offset", [0.0, 300.0, 1000.0])
@pytest.mark.parametrize("C", [100.0, 1e4])
def test_bounds_hold_where_centring_leaves_little_of_what_was_rounded(offset, C):
    X, score = table(0, 300)
    kernels = [Polynomial(degree=3, gamma=0.1), Gaussian(width=2.0)]
    fitted = KernelBank(kernels, scaling=(Centering(), UnitTrace())).fit(X + offset)
    problem = Problem(streamed(fitted), target(Hinge(), score), Hinge(C=C), LpBall(2.0))
    _, certified = solve(problem, tol=1e-3)
    Z = (X + offset).astype(np.longdouble)
    P = (np.eye(300) - 1.0 / 300).astype(np.longdouble)
    centred = [P @ (Z @ Z.T * np.longdouble(0.1) + 1) ** 3 @ P, P @ gaussian(X, 2.0) @ P]
    Ks = [(K / np.trace(K)).astype(np.float64) for K in centred]
    reference = dense_bracket(Ks, problem)
    assert reference.relative_gap <= 1e-6
    assert_agree(certified.certificate, reference, accuracy=1e-6)


def test_records_on_the_way_promise_nothing_from_below_and_the_last_is_the_certificate():
    _, problem = problem_of(Hinge(), Simplex(), 14, 300)
    result, _ = solve(problem)
    assert result.history[-1].certificate == result.certificate
    lowers = [record.certificate.lower for record in result.history[:-1]]
    assert np.isneginf(lowers).any()
    assert max(lowers) <= result.certificate.upper
    uppers = [record.certificate.upper for record in result.history]
    assert uppers == sorted(uppers, reverse=True)
    assert [record.seconds for record in result.history] == sorted(
        record.seconds for record in result.history
    )


def test_the_solution_attains_the_upper_bound():
    X, score = table(15, 260)
    y = target(Hinge(), score)
    problem = Problem(streamed(KernelBank(ENTRIES).fit(X)), y, Hinge(C=3.0), LpBall(2.0))
    _, certified = solve(problem, tol=1e-3)
    K = np.tensordot(certified.eta, by_definition(X), 1)
    v, f = certified.inner.coef, K @ certified.inner.coef
    value = 0.5 * v @ f + 3.0 * np.maximum(0.0, 1.0 - y * (f + certified.inner.intercept)).sum()
    assert certified.certificate.lower * (1 - 1e-9) <= value <= certified.certificate.upper * (1 + 1e-9)
    assert v.sum() == pytest.approx(0.0, abs=1e-9)


# -- (2) starts


def hinge_problem(seed=16, n=300, C=1.0, geometry=None, **how):
    X, score = table(seed, n)
    fitted = KernelBank(ENTRIES).fit(X)
    return X, Problem(streamed(fitted, **how), target(Hinge(), score), Hinge(C=C), geometry or Simplex())


def test_a_warm_start_goes_on_from_its_coefficients(monkeypatch):
    _, problem = hinge_problem()
    result, _ = solve(problem)
    assert result.n_iter > 3
    monkeypatch.setattr(StreamedDescent, "_coarse_to_fine", None)  # no level is solved again
    again, certified = solve(problem, start=WarmStart(result.eta, result.inner.coef))
    assert again.n_iter <= 2
    assert certified.stopped == "converged"
    rough = solve(problem, tol=1e-2, start=WarmStart(result.eta, result.inner.coef))[0]
    np.testing.assert_allclose(rough.inner.coef, result.inner.coef, rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(rough.eta, result.eta)


def test_weights_alone_are_a_start_too():
    X, problem = hinge_problem()
    _, certified = checked(X, problem, start=WarmStart(np.eye(6)[0]))
    assert certified.stopped == "converged"


@pytest.mark.parametrize("C", [0.01, 0.5, 2.0, 100.0])
@each_set
def test_a_start_from_other_prices_is_made_feasible(C, set_):
    X, problem = hinge_problem(n=200, geometry=SETS[set_][0])
    result, _ = solve(problem)
    other = replace(problem, learner=Hinge(C=C))
    later, certified = solve(other, tol=1e-3, start=WarmStart(result.eta, result.inner.coef))
    assert_agree(certified.certificate, dense_bracket(by_definition(X), other))
    assert np.abs(later.inner.coef).max() <= C * (1 + 1e-9)


@pytest.mark.parametrize("off", [1.0 + 1e-12, 1.0001, 1.001, 3.0])
@pytest.mark.parametrize("set_", ["simplex", "lp 2"])
@pytest.mark.parametrize("max_iter", [0, None])
def test_a_start_a_little_outside_proves_no_more_than_the_optimum(off, set_, max_iter):
    X, problem = hinge_problem(n=200, geometry=SETS[set_][0])
    result, _ = solve(problem)
    start = WarmStart(result.eta, off * result.inner.coef)
    _, certified = checked(X, problem, start=start, max_iter=max_iter)
    assert np.isfinite(certified.certificate.lower)


def test_what_certifying_returns_is_a_start():
    X, problem = hinge_problem(n=200, C=100.0, geometry=LpBall(2.0))
    _, certified = solve(problem, tol=1e-2)
    on_float64 = replace(problem, grams=problem.grams.in_float64())
    _, later = solve(on_float64, tol=1e-3, start=WarmStart(certified.eta, certified.inner.coef))
    assert_agree(later.certificate, dense_bracket(by_definition(X), problem))


def test_a_start_outside_the_set_is_moved_into_it():
    X, problem = hinge_problem(n=200, geometry=BoxSimplex(theta=0.3))
    result, _ = checked(X, problem, start=WarmStart(np.eye(6)[4], np.zeros(200)))
    assert np.isfinite(problem.geometry.value(result.eta))


def test_kernels_that_are_held_are_refused():
    X, problem = hinge_problem(n=100)
    held = replace(problem, grams=DenseGrams(by_definition(X)))
    with pytest.raises(
        IncompatiblePartsError, match=r"needs kernels that are streamed.*6 kernels as given.*Newton"
    ):
        solver().run(held)


# -- (3) interrupts


class CtrlC:
    """Presses Ctrl-C at one of the records."""

    def __init__(self, at):
        self.at, self.seen = at, 0

    def __call__(self, _record):
        self.seen += 1
        if self.seen == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("at", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "learner", [Hinge(C=1.0), NuHinge(nu=0.4), OneClass(nu=0.3), OneVsRest(Hinge())], ids=repr
)
def test_an_interrupt_returns_the_best_so_far_with_bounds_that_hold(learner, at):
    X, problem = problem_of(learner, Simplex(), 17, 300)
    progress = CtrlC(at)
    result, certified = checked(X, problem, tol=1e-7, progress=progress)
    assert at <= progress.seen <= at + 1  # on fewer samples it is followed by one look at all of them
    assert result.stopped == certified.stopped == "interrupted"
    assert np.isfinite(problem.geometry.value(result.eta))
    assert result.history


def test_an_interrupt_on_all_samples_keeps_what_was_reached():
    _, problem = hinge_problem()
    seen = []

    def watch(record):
        seen.append(record.certificate)
        if len(seen) == 20:
            raise KeyboardInterrupt

    whole, _ = solve(problem, tol=1e-6)
    result, certified = solve(problem, tol=1e-6, progress=watch)
    assert result.stopped == "interrupted"
    assert result.certificate.upper <= min(record.upper for record in seen[-len(result.history) :]) * (
        1 + 1e-12
    )
    assert result.n_iter < whole.n_iter
    assert certified.certificate.relative_gap < 1.0


def test_an_interrupt_while_the_first_level_is_solved_is_one(monkeypatch):
    X, problem = hinge_problem()

    def interrupted(self, problem, start=None, progress=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(Newton, "run", interrupted)
    result, certified = solve(problem)
    monkeypatch.undo()
    assert result.stopped == certified.stopped == "interrupted"
    assert_agree(certified.certificate, dense_bracket(by_definition(X), problem))


# -- (4) threads


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("learner", [Hinge(C=1.0), OneVsRest(SquaredHinge(C=1.0))], ids=repr)
def test_threads_do_not_change_a_digit(learner, dtype):
    X, score = table(18, 300)
    fitted = KernelBank(ENTRIES).fit(X)
    found = []
    for n_threads in (1, 2, 3):
        grams = streamed(fitted, dtype, n_threads)
        result, certified = solve(Problem(grams, target(learner, score), learner, LpBall(1.5)))
        found.append((result, certified))
    first, first_certified = found[0]
    for result, certified in found[1:]:
        np.testing.assert_array_equal(result.eta, first.eta)
        np.testing.assert_array_equal(result.inner.coef, first.inner.coef)
        assert result.certificate == first.certificate
        assert certified.certificate == first_certified.certificate
        assert result.n_iter == first.n_iter


# -- (5) budgets


@pytest.mark.parametrize("max_iter", [0, 1, 2, 5])
def test_no_more_blocks_are_solved_than_asked_for(monkeypatch, max_iter):
    X, problem = hinge_problem()
    on_all = []
    original = StreamedGrams.products

    def watched(self, columns, coef):
        on_all.append(self.n_samples == 300 and columns.size <= 80)
        return original(self, columns, coef)

    start = WarmStart(np.full(6, 1 / 6), np.zeros(300))
    monkeypatch.setattr(StreamedGrams, "products", watched)
    result, certified = checked(X, problem, tol=1e-7, start=start, max_iter=max_iter)
    assert sum(on_all) - 1 <= max_iter  # and one for the start
    assert result.stopped == certified.stopped == "max_iter"
    assert result.n_iter == max_iter + 1
    assert certified.certificate.relative_gap > 1e-7


def test_a_budget_is_for_all_rounds_of_kernels_together():
    X, problem = hinge_problem(C=10.0)
    start = WarmStart(np.eye(6)[4], np.zeros(300))  # the others have to be let in
    result, _ = checked(X, problem, tol=1e-6, start=start, max_iter=6)
    assert result.stopped == "max_iter"
    assert result.n_iter <= 6 + 6


# -- (6) kernels that are not in use


@pytest.mark.parametrize("geometry", [Simplex(), BoxSimplex(theta=0.6), RidgeSimplex(theta=0.05)], ids=repr)
def test_kernels_that_few_samples_have_no_use_for_come_in_when_they_matter(monkeypatch, geometry):
    X, problem = hinge_problem(n=400, geometry=geometry)
    # A first level on which one useless kernel has all the weight, and no other comes near it.
    monkeypatch.setattr(StreamedDescent, "near", np.inf)
    first = np.eye(6)[5] if not isinstance(geometry, BoxSimplex) else np.array([0, 0, 0, 0, 0.4, 0.6])

    def poor(self, problem, rows):
        return WarmStart(first, np.zeros(rows.size))

    monkeypatch.setattr(StreamedDescent, "_solve_coarsest", poor)
    result, certified = solve(problem)
    reference = Newton(tol=1e-8).solve(DenseGrams(by_definition(X)), problem.y, problem.learner, geometry)
    assert certified.stopped == "converged"
    assert_agree(certified.certificate, reference.certificate)
    large = reference.eta > 0.1
    assert large.any()
    assert (result.eta[large] > 0.0).all()


def test_a_kernel_that_only_the_samples_left_out_can_use_comes_in():
    """The first level sees every class at its even places; what tells them apart there is another column."""
    rng = np.random.default_rng(0)
    n = 500
    X, _ = table(19, n)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    probe = Problem(streamed(KernelBank(ENTRIES).fit(X)), y, Hinge(), Simplex())
    first = np.isin(np.arange(n), solver()._levels(probe)[0])
    X[:, 0] = np.where(first, y, rng.normal(size=n))  # tells classes apart on the first level ...
    X[:, 3] = np.where(first, rng.normal(size=n), y)  # ... and this on all others
    X[:, 1:3] = 0.0
    entries = [Entry(Gaussian(width=0.5), columns=[0]), Entry(Gaussian(width=0.5), columns=[3])]
    problem = replace(probe, grams=streamed(KernelBank(entries).fit(X)))
    assert set(solver()._levels(problem)[0]) == set(np.flatnonzero(first))
    coarse = solver()._solve_coarsest(problem, np.flatnonzero(first))
    assert coarse.eta[0] > 0.9
    result, certified = solve(problem)
    assert result.eta[1] > 0.5
    Ks = [gaussian(X[:, [0]], 0.5), gaussian(X[:, [3]], 0.5)]
    assert_agree(certified.certificate, dense_bracket(Ks, problem))
    assert certified.stopped == "converged"


def test_kernels_without_use_are_not_computed_on_the_way(monkeypatch, rng):
    X, _score = table(20, 400)
    X = np.column_stack([X[:, :2], rng.normal(size=(400, 12))])
    entries = [Entry(Gaussian(width=0.7), columns=[c]) for c in range(14)]
    problem = Problem(
        streamed(KernelBank(entries).fit(X)), np.sign(X[:, 0] + X[:, 1] ** 2 - 1.0), Hinge(), Simplex()
    )
    used = []
    original = StreamedGrams.products

    def watched(self, columns, coef):
        used.append(self.n_kernels)
        return original(self, columns, coef)

    monkeypatch.setattr(StreamedGrams, "products", watched)
    _, certified = solve(problem)
    assert np.median(used) < 14
    monkeypatch.undo()
    Ks = [gaussian(X[:, [c]], 0.7) for c in range(14)]
    assert_agree(certified.certificate, dense_bracket(Ks, problem))


# -- degenerate problems


@pytest.mark.parametrize("learner", [Hinge(C=1.0), SquaredHinge(C=1.0), EpsilonInsensitive(C=1.0)], ids=repr)
def test_where_nothing_can_be_learnt_nothing_is(learner):
    n = 200
    X = np.zeros((n, 4))  # all samples are one
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    problem = Problem(streamed(KernelBank(ENTRIES).fit(X)), y, learner, Simplex())
    _, certified = checked(X, problem)
    assert certified.certificate.relative_gap <= 1e-4


def test_targets_within_the_tube_cost_nothing():
    X, _ = table(21, 200)
    problem = Problem(
        streamed(KernelBank(ENTRIES).fit(X)), np.full(200, 3.0), EpsilonInsensitive(epsilon=0.1), Simplex()
    )
    _, certified = solve(problem)
    assert certified.certificate.upper == pytest.approx(0.0, abs=1e-12)
    assert not certified.inner.coef.any()


def test_too_few_samples_of_a_class_on_the_first_level_are_no_obstacle():
    X, _score = table(22, 300)
    y = np.where(np.arange(300) == 7, 1.0, -1.0)  # one sample of its class
    problem = Problem(streamed(KernelBank(ENTRIES).fit(X)), y, Hinge(C=1.0), LpBall(2.0))
    checked(X, problem, n_coarse=20)


@pytest.mark.parametrize("learner", [Hinge(C=1.0), EpsilonInsensitive(C=1.0), OneVsRest(Hinge())], ids=repr)
def test_a_first_level_that_cannot_be_solved_is_no_obstacle(monkeypatch, learner):
    X, problem = problem_of(learner, Simplex(), 25, 200)

    def unsolvable(self, problem, start=None, progress=None):
        raise DegenerateSamplesError("too few samples")

    monkeypatch.setattr(Newton, "run", unsolvable)
    _, certified = solve(problem, tol=1e-3)
    monkeypatch.undo()
    assert_agree(certified.certificate, dense_bracket(by_definition(X), problem))
