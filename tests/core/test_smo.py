"""The compiled pair-wise descents, `smo`, `smo_plus` and `smo_views`, against a conic solver."""

import numpy as np
import pytest
from tests.reference import loops

from kernelweave import _core


def dual_program(rng, n, groups):
    """A feasible random program: boxes around zero, a diagonal, one or two sums held."""
    A = rng.normal(size=(n, n))
    return dict(
        K=A @ A.T / n,
        s=rng.normal(size=n),
        d=rng.random(n) * rng.integers(0, 2),
        kink=rng.random(n) * rng.integers(0, 2, size=n) * rng.integers(0, 2),
        lo=-rng.random(n),
        hi=rng.random(n),
        group=rng.integers(0, groups, size=n),
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("n", [3, 30, 100])
def test_smo_finds_the_optimum_of_a_conic_solver(seed, groups, n):
    p = dual_program(np.random.default_rng([seed, groups, n]), n, groups)
    v, gradient = np.zeros(n), np.empty(n)
    args = [
        p[k].astype(np.int64) if k == "group" else p[k] for k in ("K", "s", "d", "kink", "lo", "hi", "group")
    ]
    _, violation = _core.smo(*args, v, gradient, 1e-10, 10**7)
    expected = loops.smo_solution(
        p["K"], p["s"], p["d"], p["lo"], p["hi"], p["group"], np.zeros(groups), p["kink"]
    ).value
    value = lambda x: 0.5 * x @ (p["K"] + np.diag(p["d"])) @ x - p["s"] @ x + p["kink"] @ np.abs(x)  # noqa: E731
    assert violation <= 1e-10
    assert value(v) == pytest.approx(expected, abs=1e-7)
    assert (p["lo"] <= v).all()
    assert (v <= p["hi"]).all()
    for g in range(groups):
        assert v[p["group"] == g].sum() == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(gradient, (p["K"] + np.diag(p["d"])) @ v - p["s"], atol=1e-10)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("groups", [1, 2])
def test_smo_on_single_precision_meets_the_tolerance_in_double(scale, tolerance, groups):
    """A first descent rounds its gradient; what is said in the end is worked out anew."""
    n, rng = 120, np.random.default_rng([int(-np.log10(tolerance)), groups])
    p = dual_program(rng, n, groups)
    K = (scale * p["K"]).astype(np.float32)
    args = [K, p["s"], p["d"], p["kink"], p["lo"], p["hi"], p["group"].astype(np.int64)]
    v, gradient = np.zeros(n), np.empty(n)
    _, violation = _core.smo(*args, v, gradient, tolerance, 10**7)
    exact = (K.astype(float) + np.diag(p["d"])) @ v - p["s"]
    np.testing.assert_allclose(gradient, exact, atol=1e-10 * max(scale, 1.0))
    assert violation <= tolerance
    assert worst_violation(exact, v, p) == pytest.approx(violation, abs=1e-9 * max(scale, 1.0))
    for g in range(groups):
        assert v[p["group"] == g].sum() == pytest.approx(0.0, abs=1e-12)
    expected = loops.smo_solution(
        K.astype(float), p["s"], p["d"], p["lo"], p["hi"], p["group"], np.zeros(groups), p["kink"]
    ).value
    value = 0.5 * v @ (exact - p["s"]) + p["kink"] @ np.abs(v)
    assert expected - 1e-6 <= value <= expected + tolerance * np.abs(p["hi"] - p["lo"]).sum() + 1e-6


@pytest.mark.parametrize(("offset", "tolerance"), [(1e3, 1e-3), (1e5, 1e-2), (1e7, 1e-1)])
def test_smo_on_single_precision_is_not_led_astray_by_large_targets(rng, offset, tolerance):
    """Steps below the last digit of a gradient would be made for ever."""
    n = 300
    x = np.sort(rng.uniform(-3, 3, n))
    K = np.exp(-((x - x[:, None]) ** 2)).astype(np.float32)
    s, zero = np.sin(x) + 0.1 * rng.normal(size=n) + offset, np.zeros(n)
    kink, box, group = np.full(n, 0.01), np.full(n, 10.0), np.zeros(n, np.int64)
    value = {}
    for kernel in (K, K.astype(float)):
        v, gradient = np.zeros(n), np.empty(n)
        steps, violation = _core.smo(
            kernel, s, zero, kink, -box, box, group, v, gradient, tolerance, 5000 * n
        )
        assert violation <= tolerance
        assert steps < 500 * n
        value[kernel.dtype.itemsize] = 0.5 * v @ K.astype(float) @ v - (s - offset) @ v + kink @ np.abs(v)
    assert value[4] == pytest.approx(value[8], abs=tolerance * 20.0 * n)
    assert value[4] < 0.0


def worst_violation(gradient, v, p):
    """How much steeper the way up of one sample of a group is than the way down of another, at most."""
    up = np.where(v < p["hi"], -gradient - np.where(v < 0, -p["kink"], p["kink"]), -np.inf)
    down = np.where(v > p["lo"], gradient + np.where(v > 0, p["kink"], -p["kink"]), -np.inf)
    return max(0.0, *(up[p["group"] == g].max() + down[p["group"] == g].max() for g in set(p["group"])))


@pytest.mark.parametrize("size", [1e-30, 1e20, 1e30])
def test_smo_on_single_precision_takes_entries_of_any_size(rng, size):
    K = np.float32(size) * np.array([[2.0, 1.0], [1.0, 2.0]], np.float32)
    v, gradient, group = np.zeros(2), np.empty(2), np.zeros(2, np.int64)
    box, zero = np.full(2, 1e3 / size), np.zeros(2)
    _, violation = _core.smo(K, np.array([1.0, -1.0]), zero, zero, -box, box, group, v, gradient, 1e-6, 1000)
    assert violation <= 1e-6
    np.testing.assert_allclose(v * size, [1.0, -1.0], rtol=1e-5)


def test_smo_meets_bounds_exactly(rng):
    n = 50
    p = dual_program(rng, n, 1)
    v, gradient = np.zeros(n), np.empty(n)
    _core.smo(
        1e-3 * p["K"],
        p["s"],
        np.zeros(n),
        np.zeros(n),
        p["lo"],
        p["hi"],
        np.zeros(n, np.int64),
        v,
        gradient,
        1e-9,
        10**6,
    )
    at_a_bound = (v == p["lo"]) | (v == p["hi"])
    assert at_a_bound.sum() >= n - 2


def test_smo_meets_kinks_exactly_and_crosses_them(rng):
    n = 50
    p = dual_program(rng, n, 1)
    start = 0.5 * np.where(np.arange(n) % 2, p["lo"], p["hi"])
    start[0], start[1] = 0.0, 0.0
    p["lo"] -= 10.0
    p["hi"] += 10.0
    start[0] = -start.sum()
    kink = np.full(n, 0.5)
    v, gradient = start.copy(), np.empty(n)
    args = (p["K"] + np.eye(n), p["s"], np.zeros(n), kink, p["lo"], p["hi"], np.zeros(n, np.int64))
    _core.smo(*args, v, gradient, 1e-10, 10**6)
    assert (v == 0.0).sum() >= 10
    assert (v * start < 0.0).any()
    expected = loops.smo_solution(p["K"] + np.eye(n), p["s"], 0.0, p["lo"], p["hi"], 0, 0.0, kink)
    np.testing.assert_allclose(v, expected.v, atol=1e-5)


def test_smo_starts_from_where_it_is_told(rng):
    n = 60
    p = dual_program(rng, n, 1)
    args = (p["K"], p["s"], p["d"], np.zeros(n), p["lo"], p["hi"], np.zeros(n, np.int64))
    v, gradient = np.zeros(n), np.empty(n)
    cold, _ = _core.smo(*args, v, gradient, 1e-8, 10**6)
    warm, _ = _core.smo(*args, v, gradient, 1e-8, 10**6)
    assert cold > 10
    assert warm == 0


def test_smo_stops_at_its_limit(rng):
    n = 60
    p = dual_program(rng, n, 1)
    v, gradient = np.zeros(n), np.empty(n)
    steps, violation = _core.smo(
        p["K"], p["s"], p["d"], np.zeros(n), p["lo"], p["hi"], np.zeros(n, np.int64), v, gradient, 1e-12, 5
    )
    assert steps == 5
    assert violation > 1e-12


def plus_program(rng, n):
    A, B = rng.normal(size=(2, n, n))
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    return A @ A.T / n, B @ B.T / n, y


@pytest.mark.parametrize("n", [4, 30, 100])
@pytest.mark.parametrize("C", [0.05, 2.0])
def test_smo_plus_finds_the_optimum_of_a_conic_solver(n, C):
    K, G, y = plus_program(np.random.default_rng([n, int(10 * C)]), n)
    alpha, beta = np.zeros(n), np.full(n, C)
    f, g = np.zeros(n), np.zeros(n)
    _, violation = _core.smo_plus(K, G, y, alpha, beta, f, g, 1e-9, 10**6)
    expected = loops.smo_plus_solution(K, G, y, C)
    assert violation <= 1e-9
    assert loops.smo_plus_value(K, G, y, C, alpha, beta) == pytest.approx(expected, rel=1e-6)
    assert min(alpha.min(), beta.min()) >= 0.0
    assert y @ alpha == pytest.approx(0.0, abs=1e-10)
    assert (alpha + beta).sum() == pytest.approx(n * C, rel=1e-12)
    np.testing.assert_allclose(f, K @ (alpha * y), atol=1e-9)
    np.testing.assert_allclose(g, G @ (alpha + beta - C), atol=1e-9)


def test_smo_plus_never_climbs_and_stops_at_its_limit(rng):
    K, G, y = plus_program(rng, 40)
    alpha, beta, f, g = np.zeros(40), np.ones(40), np.zeros(40), np.zeros(40)
    before = loops.smo_plus_value(K, G, y, 1.0, alpha, beta)
    for _ in range(20):
        steps, violation = _core.smo_plus(K, G, y, alpha, beta, f, g, 1e-12, 1)
        after = loops.smo_plus_value(K, G, y, 1.0, alpha, beta)
        assert steps == 1
        assert violation > 1e-12
        assert after < before
        before = after


def views_program(rng, n, C, D):
    """Two views of rank below n, a label per sample, bounds that differ from sample to sample."""
    A, B = rng.normal(size=(2, n, max(2, n // 2)))
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    C_a, C_b, D = C * rng.random(n), C * rng.random(n), D * rng.random(n)
    lo = np.array([np.where(y > 0, 0.0, -C_a), np.where(y > 0, 0.0, -C_b), -D])
    hi = np.array([np.where(y > 0, C_a, 0.0), np.where(y > 0, C_b, 0.0), D])
    return A @ A.T / n, B @ B.T / n, y, lo, hi


@pytest.mark.parametrize("n", [4, 30, 80])
@pytest.mark.parametrize(("C", "D", "epsilon"), [(0.1, 5.0, 0.0), (2.0, 0.3, 0.1), (20.0, 20.0, 0.5)])
def test_smo_views_finds_the_optimum_of_a_conic_solver(n, C, D, epsilon):
    A, B, y, lo, hi = views_program(np.random.default_rng([n, int(10 * C)]), n, C, D)
    x, f = np.zeros((3, n)), np.zeros((2, n))
    _, violation = _core.smo_views(A, B, y, lo, hi, epsilon, x, f, 1e-8, 10**7)
    assert violation <= 1e-8
    expected = loops.smo_views_solution(A, B, y, lo, hi, epsilon)
    assert loops.smo_views_value(A, B, y, epsilon, x) == pytest.approx(expected, rel=1e-6)
    assert (lo <= x).all()
    assert (x <= hi).all()
    u = np.array([x[0] - x[2], x[1] + x[2]])
    np.testing.assert_allclose(u.sum(axis=1), 0.0, atol=1e-10 * C * n)
    np.testing.assert_allclose(f, [A @ u[0], B @ u[1]], atol=1e-8 * C)


def test_smo_views_never_climbs_and_stops_at_its_limit(rng):
    A, B, y, lo, hi = views_program(rng, 40, 1.0, 1.0)
    x, f = np.zeros((3, 40)), np.zeros((2, 40))
    values = [loops.smo_views_value(A, B, y, 0.1, x)]
    for _ in range(100):
        steps, violation = _core.smo_views(A, B, y, lo, hi, 0.1, x, f, 1e-12, 1)
        values.append(loops.smo_views_value(A, B, y, 0.1, x))
        assert steps == 1
        assert violation > 1e-12
    assert (np.diff(values) < 0.0).all()
    assert (x[2] != 0.0).any()


def run_smo_views(y=np.array([1.0, -1.0]), x=np.zeros((3, 2)), B=np.eye(2), f=np.zeros((2, 2)), epsilon=0.0):  # noqa: B008
    lo, hi = (
        np.array([[0.0, -1.0], [0.0, -1.0], [-1.0, -1.0]]),
        np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]]),
    )
    _core.smo_views(np.eye(2), B, y, lo, hi, epsilon, x, f, 1e-3, 10)


def run_smo_plus(y=np.array([1.0, -1.0]), alpha=np.zeros(2), G=np.eye(2), f=np.zeros(2)):  # noqa: B008
    _core.smo_plus(np.eye(2), G, y, alpha, np.ones(2), f, np.zeros(2), 1e-3, 10)


def run_smo(s=np.ones(2), group=np.zeros(2, np.int64), v=np.zeros(2), kink=np.zeros(2)):  # noqa: B008 - never written to
    _core.smo(np.eye(2), s, np.zeros(2), kink, np.zeros(2), np.ones(2), group, v, np.empty(2), 1e-3, 10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: run_smo(v=np.full(2, 3.0)), "feasible"),
        (lambda: run_smo(s=np.ones(3)), "one entry per row"),
        (lambda: run_smo(group=np.full(2, -1)), "group labels"),
        (lambda: run_smo(kink=np.full(2, -1.0)), "kinks"),
        (lambda: run_smo_plus(y=np.array([1.0, 0.0])), "labels must be 1 or -1"),
        (lambda: run_smo_plus(alpha=np.full(2, -1.0)), "feasible"),
        (lambda: run_smo_plus(G=np.eye(3)), "square"),
        (lambda: run_smo_plus(f=np.zeros(3)), "one entry per row"),
        (lambda: run_smo_views(x=np.full((3, 2), 2.0)), "feasible"),
        (lambda: run_smo_views(B=np.eye(3)), "square"),
        (lambda: run_smo_views(y=np.ones(3)), "square"),
        (lambda: run_smo_views(f=np.zeros((2, 3))), "an entry per label"),
        (lambda: run_smo_views(epsilon=-1.0), "epsilon"),
    ],
)
def test_wrong_shapes_and_starts_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
