"""The oracles against each other: two conic routes, scikit-learn, and the limits the papers state."""

import numpy as np
import pytest
from sklearn.svm import SVC, NuSVC

from . import problems
from .cones import OracleError
from .conic import conic_optimum, conic_optimum_shared, primal_optimum, primal_optimum_shared

N, M = 20, 4
PER_SAMPLE = np.linspace(0.2, 3.0, N)
LEARNERS = {
    "hinge": ("hinge", 1.0),
    "weak hinge": ("hinge", 0.01),
    "hinge per sample": ("hinge", PER_SAMPLE),
    "nu": ("nu", 0.4),
    "squared": ("squared", 1.0),
    "distribution": ("distribution", 0.3),
    "distribution per sample": ("distribution", PER_SAMPLE),
    "squared per sample": ("squared", PER_SAMPLE),
}
GEOMETRIES = [
    ("uniform",),
    ("point", [0.5, 0.0, 0.2, 0.1]),
    ("simplex",),
    ("box", 0.3),
    ("ridge", 1.0),
    ("ridge", 0.05),
    ("power", 1.0, 1.5),
    ("power", 0.3, 3.0),
    ("lp", 1.0),
    ("lp", 1.1),
    ("lp", 4.0 / 3.0),
    ("lp", 2.0),
    ("lp", 8.0),
    ("lp", np.inf),
    ("elastic", 0.0),
    ("elastic", 0.5),
    ("elastic", 1.0),
    ("group", [[0, 2], [1, 3]], 0.7),
    ("group", [0, 1, 2, 1], 1.0),
    ("group", [0, 0, 1, 1], 0.3),  # the caps alone keep the sum of norms below 1
]


def same(value):
    return pytest.approx(value, rel=1e-6)


def coefficients(machine):
    """The signed dual coefficients of a fitted scikit-learn machine, one per sample."""
    v = np.zeros(N)
    v[machine.support_] = machine.dual_coef_[0]
    return v


def penalty(geometry, eta):
    """r(eta), from the definitions."""
    if geometry[0] == "ridge":
        return sum(x**2 for x in eta) / (2.0 * geometry[1])
    if geometry[0] == "power":
        theta, p = geometry[1:]
        q = p / (p - 1.0)
        return (1.0 / p) * (2.0 / (q * theta)) ** (p - 1.0) * sum(x**p for x in eta)
    return 0.0


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_both_routes_find_the_same_optimum_and_weights_that_reach_it(geometry, learner):
    Ks, y = problems.random_problem(11, N, M)
    dual, primal = conic_optimum(Ks, y, learner, geometry), primal_optimum(Ks, y, learner, geometry)
    assert primal.value == same(dual.value)
    for solution in (dual, primal):
        K = sum(weight * K for weight, K in zip(solution.eta, Ks, strict=True))
        inner = conic_optimum([K], y, learner, ("uniform",)).value
        assert inner + penalty(geometry, solution.eta) == same(dual.value)


@pytest.mark.parametrize("learner", [("hinge", 1.0), ("nu", 0.15), ("squared", 10.0)], ids=str)
@pytest.mark.parametrize(
    "geometry", [("simplex",), ("box", 0.3), ("lp", 1.5), ("group", [0, 0, 1, 1], 0.6)], ids=str
)
@pytest.mark.parametrize(
    "make",
    [
        problems.duplicated_problem,
        problems.zero_kernel_problem,
        lambda *size: problems.imbalanced_problem(*size, positives=2),
    ],
    ids=["duplicated", "zero kernel", "imbalanced"],
)
def test_both_routes_agree_on_degenerate_problems(make, geometry, learner):
    Ks, y = make(3, N, M)
    assert primal_optimum(Ks, y, learner, geometry).value == same(
        conic_optimum(Ks, y, learner, geometry).value
    )


@pytest.mark.parametrize("geometry", [("simplex",), ("box", 1.0), ("lp", 2.0), ("elastic", 0.3)], ids=str)
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0, PER_SAMPLE], ids=["0.1", "1", "10", "per sample"])
def test_one_kernel_is_the_machine_of_scikit_learn(C, geometry):
    [K], y = problems.single_kernel_problem(5, N)
    weights = np.full(N, C)
    machine = SVC(C=1.0, kernel="precomputed", tol=1e-9).fit(K, y, sample_weight=weights)
    v = coefficients(machine)
    assert conic_optimum([K], y, ("hinge", C), geometry).value == same(np.abs(v).sum() - v @ K @ v / 2.0)


@pytest.mark.parametrize("nu", [0.2, 0.5, 0.8])
def test_one_kernel_in_the_nu_form_is_the_machine_of_scikit_learn(nu):
    [K], y = problems.single_kernel_problem(5, N)
    machine = NuSVC(nu=nu, kernel="precomputed", tol=1e-9).fit(K, y)
    v = np.zeros(N)
    v[machine.support_] = (
        machine.dual_coef_[0] / np.abs(machine.dual_coef_[0]).sum()
    )  # it rescales to margin 1
    assert conic_optimum([K], y, ("nu", nu), ("simplex",)).value == same(-v @ K @ v / 2.0)


@pytest.mark.parametrize("C", [1.0, 10.0, PER_SAMPLE], ids=["1", "10", "per sample"])
def test_the_squared_hinge_is_a_hard_margin_on_a_heavier_diagonal(C):
    [K], y = problems.single_kernel_problem(5, N)
    heavier = K + np.diag(np.broadcast_to(1.0 / np.asarray(C), (N,)))
    machine = SVC(C=1e6, kernel="precomputed", tol=1e-9).fit(heavier, y)
    v = coefficients(machine)
    assert conic_optimum([K], y, ("squared", C), ("simplex",)).value == same(
        np.abs(v).sum() - v @ heavier @ v / 2.0
    )


@pytest.mark.parametrize("learner", [("hinge", 1.0), ("nu", 0.4), ("squared", 1.0)], ids=str)
@pytest.mark.parametrize(
    ("geometry", "limit"),
    [
        (("box", 1.0 / M), ("uniform",)),
        (("box", 1.0), ("simplex",)),
        (("box", 5.0), ("simplex",)),
        (("lp", 1.0), ("simplex",)),
        (("elastic", 1.0), ("simplex",)),
        (("elastic", 0.0), ("lp", 2.0)),
        (("power", 0.7, 2.0), ("ridge", 0.7)),
        (("group", [0, 1, 2, 3], 1.0), ("simplex",)),
        (("group", [0, 1, 2, 3], 0.3), ("box", 0.3)),
        (("group", [0, 0, 0, 0], 1.0), ("lp", 2.0)),
        (("ridge", 1e9), ("simplex",)),
    ],
    ids=str,
)
def test_limits_of_the_geometries(geometry, limit, learner):
    Ks, y = problems.random_problem(8, N, M)
    assert conic_optimum(Ks, y, learner, geometry).value == same(conic_optimum(Ks, y, learner, limit).value)


def test_the_geometries_are_not_all_the_same():
    Ks, y = problems.random_problem(8, N, M)
    values = [
        conic_optimum(Ks, y, ("hinge", 1.0), g).value
        for g in GEOMETRIES
        if g not in (("lp", 1.0), ("elastic", 1.0), ("elastic", 0.0))  # the simplex twice, and the l2 ball
    ]
    assert np.diff(np.sort(values)).min() > 1e-3


def test_a_nearly_flat_ball_is_nearly_the_sum_of_kernels():
    Ks, y = problems.random_problem(8, N, M)
    machine = SVC(C=1.0, kernel="precomputed", tol=1e-9).fit(sum(Ks), y)
    v = coefficients(machine)
    expected = np.abs(v).sum() - v @ sum(Ks) @ v / 2.0
    assert conic_optimum(Ks, y, ("hinge", 1.0), ("lp", np.inf)).value == same(expected)
    assert conic_optimum(Ks, y, ("hinge", 1.0), ("lp", 1e4)).value == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    "learner", [("hinge", PER_SAMPLE), ("nu", 0.4), ("squared", 1.0)], ids=["hinge", "nu", "squared"]
)
@pytest.mark.parametrize("geometry", [("simplex",), ("ridge", 0.5), ("lp", 1.5), ("elastic", 0.5)], ids=str)
def test_shared_weights_agree_on_both_routes_and_cost_more_than_separate_ones(geometry, learner):
    Ks, _ = problems.random_problem(2, N, M)
    Y = problems.multiclass_labels(2, N, 3)
    shared = conic_optimum_shared(Ks, Y, learner, geometry).value
    assert primal_optimum_shared(Ks, Y, learner, geometry).value == same(shared)
    if penalty(geometry, np.ones(M)) == 0.0:
        assert shared > sum(conic_optimum(Ks, y, learner, geometry).value for y in Y.T)


def test_shared_uniform_weights_separate_into_classes():
    Ks, _ = problems.random_problem(2, N, M)
    Y = problems.multiclass_labels(2, N, 3)
    shared = conic_optimum_shared(Ks, Y, ("hinge", 1.0), ("uniform",)).value
    assert shared == same(sum(conic_optimum(Ks, y, ("hinge", 1.0), ("uniform",)).value for y in Y.T))


@pytest.mark.parametrize("name", ["hinge", "squared"])
@pytest.mark.parametrize("route", [conic_optimum, primal_optimum])
def test_a_sample_of_weight_zero_is_no_sample(route, name):
    Ks, y = problems.random_problem(9, N, M)
    C = np.ones(N)
    C[4:8] = 0.0
    fewer = np.flatnonzero(C)
    expected = conic_optimum([K[np.ix_(fewer, fewer)] for K in Ks], y[fewer], (name, 1.0), ("lp", 2.0)).value
    assert route(Ks, y, (name, C), ("lp", 2.0)).value == same(expected)


@pytest.mark.parametrize("route", [conic_optimum, primal_optimum])
def test_an_impossible_problem_is_refused(route):
    Ks, y = problems.imbalanced_problem(1, N, M, positives=2)
    with pytest.raises(OracleError):
        route(Ks, y, ("nu", 0.9), ("simplex",))
    with pytest.raises(ValueError, match="geometry"):
        route(Ks, y, ("hinge", 1.0), ("sphere",))
    with pytest.raises(ValueError, match="learner"):
        route(Ks, y, ("logistic", 1.0), ("simplex",))


def test_random_problems_repeat_and_are_what_they_say():
    Ks, y = problems.random_problem(4)
    again, labels = problems.random_problem(4)
    assert np.array_equal(Ks, again)
    assert np.array_equal(y, labels)
    assert set(y) == {-1.0, 1.0}
    assert len(Ks) == 8
    for K in Ks:
        assert np.trace(K) / len(K) == pytest.approx(1.0)
        assert np.array_equal(K, K.T)
        assert np.linalg.eigvalsh(K)[0] > -1e-10
    assert {np.linalg.matrix_rank(K) for K in Ks} >= {1, 60}
    assert 0.0 < np.abs(Ks[-1] - Ks[0]).max() < 1e-3
