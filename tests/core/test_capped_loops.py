"""Active sets of the capped simplex against their naive twins."""

import numpy as np
import pytest
from tests.reference import loops

from kernelweave import _core


def program(rng, n):
    root = rng.normal(size=(n + 3, n))
    return root.T @ root, 3.0 * rng.random(n)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9, 33, 70])
@pytest.mark.parametrize("cap", [np.inf, 0.3])
def test_the_stationary_point_solves_the_optimality_conditions(rng, n, cap):
    A, b = program(rng, n)
    state = rng.choice(np.array([-1, 0, 1] if cap < 1.0 else [-1, 0], dtype=np.int8), size=n)
    state[rng.integers(n)] = 0
    x, surplus = np.empty((2, n))
    assert _core.stationary(A, b, cap, state, x, surplus)
    expected, slopes = loops.stationary(A, b, cap, state)
    np.testing.assert_allclose(x, expected, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_allclose(surplus, slopes, atol=1e-7 * np.abs(A).max() * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("cap", [np.inf, 0.2])
def test_exchanges_end_as_those_of_the_twin(seed, cap):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 40))
    A, b = program(rng, n)
    state = rng.choice(np.array([-1, 0], dtype=np.int8), size=n)
    state[0] = 0
    for most, max_rounds, patience in ((n, 12, 3), (1, 12, 3), (n, 1, 3), (n, 12, 1)):
        own, x = state.copy(), np.empty(n)
        found = _core.exchange(A, b, cap, own, x, 0.0, most, max_rounds, patience)
        expected, settled = loops.exchange(A, b, cap, state, most, max_rounds, patience)
        assert found == int(settled)
        if settled:
            np.testing.assert_allclose(x, expected, atol=1e-8)


def test_what_has_no_answer_says_so():
    x, surplus = np.empty((2, 2))
    free, fixed = np.zeros(2, dtype=np.int8), np.full(2, -1, dtype=np.int8)
    indefinite, b = np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones(2)
    assert not _core.stationary(indefinite, b, np.inf, free, x, surplus)
    assert not _core.stationary(np.eye(2), b, np.inf, fixed, x, surplus)
    assert _core.exchange(indefinite, b, np.inf, free.copy(), x, 0.0, 2, 12, 3) == -1
    assert _core.exchange(np.eye(2), b, np.inf, fixed, x, 0.0, 2, 12, 3) == 0
    for bad in (np.nan, np.inf):
        assert _core.exchange(np.eye(2), np.array([1.0, bad]), np.inf, free.copy(), x, 0.0, 2, 12, 3) == -1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, x: _core.stationary(np.eye(3), np.ones(2), 1.0, s, x, x.copy()), "one row per weight"),
        (lambda s, x: _core.stationary(np.eye(2), np.ones(2), 1.0, s, x, np.ones(3)), "one entry per weight"),
        (
            lambda s, x: _core.stationary(np.eye(2), np.ones(2), 1.0, s[:1], x, x.copy()),
            "one entry per weight",
        ),
        (lambda s, x: _core.exchange(np.eye(2), np.ones(3), 1.0, s, x, 0.0, 1, 1, 1), "one row per weight"),
        (
            lambda s, x: _core.exchange(np.eye(2), np.ones(2), 1.0, s[:1], x, 0.0, 1, 1, 1),
            "one entry per weight",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.zeros(2, dtype=np.int8), np.ones(2))
