"""What every geometry promises, by table."""

import pickle
from inspect import isabstract

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.geometry import conic
from tests.geometry.sets import CASES, IDS, M

import kernelweave.geometry as package
from kernelweave.geometry import (
    BoxSimplex,
    ElasticNetBall,
    Geometry,
    GroupBox,
    LpBall,
    Point,
    PowerSimplex,
    RidgeSimplex,
    Simplex,
    Uniform,
    fenchel_young_gap,
)

every_case = pytest.mark.parametrize("case", CASES, ids=IDS)


def penalised(case):
    return isinstance(case.geometry, RidgeSimplex | PowerSimplex)


def subclasses(cls):
    for child in cls.__subclasses__():
        yield child
        yield from subclasses(child)


def test_every_geometry_has_a_row():
    ours = {cls for cls in subclasses(Geometry) if cls.__module__.startswith("kernelweave.geometry.")}
    shipped = {cls for cls in ours if not isabstract(cls)}
    exported = {
        value
        for name in package.__all__
        if isinstance(value := getattr(package, name), type) and issubclass(value, Geometry)
    } - {Geometry}
    assert shipped == exported == {type(case.geometry) for case in CASES}


@every_case
def test_its_parameters_make_it_and_it_pickles(case):
    geometry = case.geometry
    assert type(geometry)(**geometry.get_params()) == geometry
    assert pickle.loads(pickle.dumps(geometry)) == geometry


@every_case
def test_the_value_is_the_penalty_inside_and_infinite_outside(case, rng):
    geometry = case.geometry
    for _ in range(20):
        eta = case.sample(rng)
        assert case.contains(eta)
        assert geometry.value(eta) == pytest.approx(case.penalty(eta), rel=1e-9, abs=1e-12)
        for outside in (eta + 0.3, eta - 0.3 * np.eye(M)[rng.integers(M)], 1.01 * eta + 0.01):
            assert geometry.value(outside) == np.inf or case.contains(outside)
    assert geometry.value(np.full(M, np.nan)) == np.inf


@every_case
def test_the_start_is_a_point_of_the_set_and_gives_no_kernel_up(case):
    case.geometry.check(M)
    start = case.geometry.start(M)
    assert case.contains(start)
    assert start.min() > 0.0


@every_case
def test_the_start_of_a_ball_lies_on_its_boundary(case):
    assert not case.contains(1.001 * case.geometry.start(M))


@every_case
@pytest.mark.parametrize("spread", [0.01, 1.0, 100.0])
def test_no_feasible_point_beats_the_conjugate_and_the_maximizer_reaches_it(case, spread, rng):
    geometry = case.geometry
    h = spread * rng.uniform(0.0, 3.0, M)
    h[2] = h[5]
    best = geometry.maximizer(h)
    assert case.contains(best)
    scale = max(1.0, spread)
    reached = h @ best - case.penalty(best)
    assert geometry.conjugate(h) == pytest.approx(reached, rel=1e-12, abs=1e-12 * scale)
    assert fenchel_young_gap(geometry, best, h) == pytest.approx(0.0, abs=1e-11 * scale)
    for _ in range(50):
        eta = case.sample(rng)
        assert h @ eta - case.penalty(eta) <= reached + 1e-10 * scale


@every_case
def test_the_conjugate_is_that_of_the_conic_solver(case, rng):
    for h in (rng.uniform(0.0, 3.0, M), 0.05 * rng.uniform(0.0, 3.0, M), rng.normal(size=M)):
        assert case.geometry.conjugate(h) == pytest.approx(conic.best_value(case, h), rel=1e-5, abs=1e-6)


@every_case
def test_equal_energies_get_equal_weights_and_none_at_all_still_gives_a_point(case):
    geometry = case.geometry
    for h in (np.zeros(M), np.full(M, 2.5)):
        best = geometry.maximizer(h)
        assert case.contains(best)
        assert best.max() > 0.0
        for order in (np.arange(M)[::-1], np.roll(np.arange(M), 3)):
            np.testing.assert_allclose(best[order], case.permuted(order).maximizer(h), atol=1e-14)
        assert geometry.conjugate(h) == pytest.approx(h @ best - case.penalty(best), abs=1e-12)
    np.testing.assert_allclose(geometry.maximizer(np.zeros(M)), geometry.start(M), rtol=1e-12)


@every_case
def test_rounding_below_zero_does_no_harm(case, rng):
    h = rng.uniform(0.5, 1.0, M)
    h[3] = -1e-18
    assert case.contains(case.geometry.maximizer(h))
    almost_none = np.full(M, -1e-18)
    assert case.contains(case.geometry.maximizer(almost_none))


@every_case
@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_the_projection_is_the_nearest_point(case, spread, rng):
    z = spread * rng.normal(size=M)
    near = case.geometry.project(z)
    assert case.contains(near)
    distance = 0.5 * np.sum((near - z) ** 2)
    assert distance == pytest.approx(conic.nearest_distance(case, z), rel=1e-6, abs=1e-7)
    for _ in range(50):  # the angle condition, sharper than the distance
        assert (z - near) @ (case.sample(rng) - near) <= 1e-9 * max(1.0, spread**2)


@every_case
def test_points_of_the_set_are_their_own_projection(case, rng):
    for _ in range(10):
        eta = case.sample(rng)
        np.testing.assert_allclose(case.geometry.project(eta), eta, atol=1e-9)


@every_case
@pytest.mark.parametrize("step", [0.05, 4.0])
def test_the_prox_balances_distance_and_penalty(case, step, rng):
    z = rng.normal(size=M)
    x = case.geometry.prox(z, step)
    assert case.contains(x)
    value = 0.5 * np.sum((x - z) ** 2) + step * case.penalty(x)
    assert value == pytest.approx(conic.prox_value(case, z, step), rel=1e-6, abs=1e-7)
    if not penalised(case):
        np.testing.assert_array_equal(x, case.geometry.project(z))


NORMS = {
    "all positive": [0.3, 1.2, 0.8, 0.1, 2.0, 0.7, 0.5],
    "one rules": [5.0, 0.01, 0.02, 0.01, 0.01, 0.02, 0.01],
    "ties": [1.0, 1.0, 0.4, 0.4, 0.4, 1.0, 0.4],
    "zeros": [0.0, 1.2, 0.0, 0.6, 0.0, 0.9, 0.3],
    "two positive": [0.0, 0.0, 0.7, 0.0, 0.2, 0.0, 0.0],
    "small zeros": [0.0, 0.02, 0.0, 0.01, 0.0, 0.01, 0.0],
}


@every_case
@pytest.mark.parametrize("norms", NORMS.values(), ids=NORMS)
def test_the_block_update_is_that_of_the_conic_solver(case, norms):
    norms = np.array(norms)
    x = case.geometry.reweight(norms)
    assert case.contains(x)
    used = norms > 0.0
    assert x[used].min() > 0.0
    value = 0.5 * np.sum(norms[used] ** 2 / x[used]) + case.penalty(x)
    assert value == pytest.approx(conic.block_value(case, norms), rel=2e-6, abs=1e-7)


@every_case
def test_without_norms_the_block_update_is_even(case):
    np.testing.assert_allclose(case.geometry.reweight(np.zeros(M)), case.geometry.start(M), rtol=1e-12)


def models(rng):
    """Curvatures as roots: definite, singular, with a duplicated and with a zero kernel, and none."""
    definite, singular = rng.normal(size=(9, M)), rng.normal(size=(3, M))
    twins = rng.normal(size=(9, M))
    twins[:, 4] = twins[:, 2]
    blank = rng.normal(size=(5, M))
    blank[:, 1] = 0.0
    energies = rng.uniform(0.2, 1.0, M)
    yield "definite", energies, definite
    yield "singular", energies, singular
    yield "collinear", energies, 1.0 + 0.05 * singular
    yield "twins", np.where(np.arange(M) == 4, energies[2], energies), twins
    yield "zero kernel", np.where(np.arange(M) == 1, 0.0, energies), blank
    yield "linear", energies, np.zeros((1, M))


@every_case
@pytest.mark.parametrize("kind", ["definite", "singular", "collinear", "twins", "zero kernel", "linear"])
def test_the_model_step_is_that_of_the_conic_solver(case, kind, rng):
    geometry = case.geometry
    h, root = next((h, root) for name, h, root in models(rng) if name == kind)
    H = root.T @ root
    for eta in (geometry.start(M), geometry.maximizer(rng.uniform(0.0, 1.0, M))):
        x = geometry.model_step(eta, h, H)
        assert case.contains(x)
        if geometry == LpBall(np.inf):  # by design the sum of kernels, whatever the model says
            np.testing.assert_array_equal(x, np.ones(M))
            continue
        value = case.penalty(x) - h @ (x - eta) + 0.5 * np.sum((root @ (x - eta)) ** 2)
        assert value == pytest.approx(conic.model_value(case, eta, h, root), rel=1e-6, abs=1e-6)


@every_case
@pytest.mark.parametrize("lean", [-0.5, 0.5])
def test_the_model_step_is_that_of_the_conic_solver_where_some_energies_are_negative(case, lean, rng):
    geometry = case.geometry
    root, h, eta = rng.normal(size=(9, M)), lean + rng.uniform(0.0, 1.0, M), geometry.start(M)
    if geometry == LpBall(np.inf):  # always the sum of kernels
        return
    x = geometry.model_step(eta, h, root.T @ root)
    assert case.contains(x)
    value = case.penalty(x) - h @ (x - eta) + 0.5 * np.sum((root @ (x - eta)) ** 2)
    assert value == pytest.approx(conic.model_value(case, eta, h, root), rel=1e-6, abs=1e-6)


@every_case
def test_the_model_step_stays_where_nothing_is_better(case, rng):
    h = rng.uniform(0.0, 1.0, M)
    best = case.geometry.maximizer(h)
    x = case.geometry.model_step(best, h, np.diag(rng.uniform(0.1, 1.0, M)))
    np.testing.assert_allclose(x, best, atol=1e-8)


@every_case
def test_the_order_of_the_kernels_does_not_matter(case, rng):
    order = rng.permutation(M)
    shuffled = case.permuted(order)
    z, h, norms = rng.normal(size=M), rng.uniform(0.0, 1.0, M), rng.uniform(0.0, 1.0, M)
    root = rng.normal(size=(M, M))
    H, eta = root.T @ root, case.geometry.start(M)
    for answer, same in (
        (case.geometry.maximizer(h), shuffled.maximizer(h[order])),
        (case.geometry.project(z), shuffled.project(z[order])),
        (case.geometry.prox(z, 0.3), shuffled.prox(z[order], 0.3)),
        (case.geometry.reweight(norms), shuffled.reweight(norms[order])),
        (eta, shuffled.start(M)),
    ):
        np.testing.assert_allclose(answer[order], same, atol=1e-12)
    step = shuffled.model_step(eta[order], h[order], H[np.ix_(order, order)])
    np.testing.assert_allclose(case.geometry.model_step(eta, h, H)[order], step, atol=1e-6)


@every_case
def test_the_verbs_leave_their_arguments_alone(case, rng):
    h, H = rng.uniform(0.0, 1.0, M), np.eye(M)
    eta = case.geometry.start(M)
    kept = h.copy(), H.copy(), eta.copy()
    geometry = case.geometry
    before = repr(geometry)
    for _ in range(2):
        geometry.value(eta), geometry.conjugate(h), geometry.maximizer(h), geometry.project(h)
        geometry.prox(h, 0.5), geometry.reweight(h), geometry.model_step(eta, h, H)
    for now, then in zip((h, H, eta), kept, strict=True):
        np.testing.assert_array_equal(now, then)
    assert repr(geometry) == before


@every_case
def test_the_answer_is_a_fresh_array(case, rng):
    eta = case.geometry.maximizer(rng.uniform(0.0, 1.0, M))
    x = case.geometry.model_step(eta, np.zeros(M), np.eye(M))
    assert not np.shares_memory(x, eta)


def scaled_geometry(geometry, factor):
    """The geometry whose maximizer at h is the given one's at factor * h."""
    if isinstance(geometry, RidgeSimplex):
        return RidgeSimplex(geometry.theta * factor)
    if isinstance(geometry, PowerSimplex):
        return PowerSimplex(geometry.theta * factor ** (1.0 / (geometry.p - 1.0)), geometry.p)
    return geometry


SCALES = st.floats(-8.0, 8.0)


@every_case
@settings(max_examples=15, deadline=None)
@given(scale=SCALES, seed=st.integers(0, 1000))
def test_units_of_the_energies_do_not_matter(case, scale, seed):
    rng = np.random.default_rng(seed)
    factor, h = 10.0**scale, rng.uniform(0.0, 1.0, M)
    geometry = case.geometry
    if penalised(case):  # the penalty has units of its own: keep it within reach of the energies
        factor = 10.0 ** (0.1 * scale)
    best = geometry.maximizer(factor * h)
    assert case.contains(best)
    np.testing.assert_allclose(best, scaled_geometry(geometry, factor).maximizer(h), atol=1e-9)
    far = geometry.maximizer(10.0**scale * h)
    assert case.contains(far)
    gap = fenchel_young_gap(geometry, far, 10.0**scale * h)
    assert abs(gap) <= 1e-12 * (10.0**scale + case.penalty(far))


@every_case
@settings(max_examples=15, deadline=None)
@given(scale=SCALES, seed=st.integers(0, 1000))
def test_units_of_the_norms_do_not_matter(case, scale, seed):
    rng = np.random.default_rng(seed)
    norms = np.where(rng.random(M) < 0.3, 0.0, rng.uniform(0.0, 1.0, M))
    factor = 10.0**scale
    assert case.contains(case.geometry.reweight(factor * norms))
    if penalised(case):
        factor = 10.0 ** (0.05 * scale)
    same = scaled_geometry(case.geometry, factor**2).reweight(norms)
    np.testing.assert_allclose(case.geometry.reweight(factor * norms), same, atol=1e-9)


@every_case
@settings(max_examples=15, deadline=None)
@given(scale=SCALES, seed=st.integers(0, 1000))
def test_far_points_are_projected_as_surely_as_near_ones(case, scale, seed):
    rng = np.random.default_rng(seed)
    z = 10.0**scale * rng.normal(size=M)
    near = case.geometry.project(z)
    assert case.contains(near)
    for _ in range(5):
        assert (z - near) @ (case.sample(rng) - near) <= 1e-9 * max(1.0, 10.0**scale)


@every_case
@settings(max_examples=10, deadline=None)
@given(scale=SCALES, seed=st.integers(0, 1000))
def test_units_of_the_model_do_not_matter(case, scale, seed):
    rng = np.random.default_rng(seed)
    root, h, eta = rng.normal(size=(M, M)), rng.uniform(0.2, 1.0, M), case.geometry.start(M)
    factor = 10.0 ** (0.1 * scale if penalised(case) else scale)
    H = root.T @ root
    x = case.geometry.model_step(eta, factor * h, factor * H)
    assert case.contains(x)
    np.testing.assert_allclose(x, scaled_geometry(case.geometry, factor).model_step(eta, h, H), atol=1e-6)


SINGLE = [
    Uniform(),
    Point([1.0]),
    Simplex(),
    BoxSimplex(),
    BoxSimplex(1.0),
    RidgeSimplex(0.3),
    PowerSimplex(2.0, 1.4),
    LpBall(1.0),
    LpBall(1.3),
    LpBall(np.inf),
    ElasticNetBall(0.4),
    GroupBox(),
    GroupBox(["only"]),
]


@pytest.mark.parametrize("geometry", SINGLE, ids=str)
def test_one_kernel_alone_gets_all_there_is(geometry):
    one = np.array([0.7])
    geometry.check(1)
    for x in (
        geometry.maximizer(one),
        geometry.reweight(one),
        geometry.start(1),
        geometry.project(3.0 * one),
    ):
        assert x == pytest.approx([1.0], abs=1e-12)
    assert geometry.model_step(np.ones(1), one, np.array([[0.3]])) == pytest.approx([1.0], abs=1e-9)
