"""A sum that follows its weights is the sum of all kernels, and says how far rounding may have brought it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave.gram import LazyGrams, MatrixSource, PackedGrams
from kernelweave.gram.rounding import SINGLE
from kernelweave.gram.sums import FEW, TIMES, Sum, follows, summed

N, M = 110, 8


def random_matrices(rng, n=N):
    factors = rng.normal(size=(M, n, 6))
    return [A @ A.T for A in factors]


def packed(matrices, dtype, centre=False, even=False):
    how = {"dtype": dtype, "centre": centre, "n_threads": 2, "even": even}
    return PackedGrams.pack([MatrixSource(matrices)], len(matrices), len(matrices[0]), **how)


def by_reference(matrices, dtype, centre=False):
    source = MatrixSource(matrices)
    return LazyGrams([source], len(matrices), len(matrices[0]), centre=centre, dtype=dtype, n_threads=2)


def known_evenly(matrices, dtype, centre=False):
    """Return kernels whose even sum is that of the originals, before they were rounded."""
    return packed(matrices, dtype, centre, even=True)


STACKS = {"packed": packed, "known evenly": known_evenly, "by reference": by_reference}
every_stack = pytest.mark.parametrize("held", STACKS.values(), ids=STACKS)


def walk(rng, steps, moved=2):
    """Yield weights most of which are one multiple of those before."""
    eta = np.full(M, rng.random() + 0.1)  # evenly at first
    yield eta
    for _ in range(steps):
        eta = rng.uniform(0.3, 1.2) * eta
        eta[rng.permutation(M)[:moved]] = rng.random(moved)
        yield eta


@every_stack
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_is_the_sum_of_the_kernels_wherever_it_went(rng, held, dtype, centre):
    stack = held(random_matrices(rng), dtype, centre)
    first, *others = walk(rng, TIMES)
    total = summed(stack, first)
    assert total.n_moves == 0
    moves = []
    for eta in others:
        total = total.at(stack, eta)
        moves.append(total.n_moves)
        exact = stack.combine(eta).astype(np.float64)
        close = 1e-12 if dtype == "float64" else 4.0 * TIMES * SINGLE
        np.testing.assert_allclose(total.K, exact, rtol=0.0, atol=close * np.abs(exact).max())
        np.testing.assert_array_equal(total.eta, eta)
    assert max(moves) >= 2


def test_kernels_that_keep_their_part_are_not_read(rng):
    stack = packed(random_matrices(rng), "float32")
    total, eta = summed(stack, np.ones(M)), np.full(M, 0.5)
    eta[[1, 4]] = 0.9, 0.0
    expected = stack.combine(eta)
    stack.packed[[0, 2, 3, 5, 6, 7]] = np.nan
    np.testing.assert_allclose(total.at(stack, eta).K, expected, rtol=0.0, atol=1e-6 * np.abs(expected).max())


@every_stack
@given(seed=st.integers(0, 10_000), size=st.floats(-30.0, 20.0), steps=st.integers(1, TIMES))
def test_the_image_of_what_followed_lies_within_what_is_allowed(held, seed, size, steps):
    rng = np.random.default_rng(seed)
    # Copies of a few samples: their roundings all fall the same way and add up.
    X = np.repeat(rng.normal(size=(5, 3)), 22, axis=0)
    matrices = [10.0**size * (X @ np.diag(rng.random(3)) @ X.T + rng.random()) for _ in range(M)]
    stack = held(matrices, "float32")
    first, *others = walk(rng, steps)
    total = summed(stack, first)
    for eta in others:
        total = total.at(stack, eta)
    v = rng.normal(size=N) + 3.0 * rng.random()
    K = np.tensordot(total.eta.astype(np.longdouble), np.array(matrices, dtype=np.longdouble), axes=1)
    told = stack.image_near(total, v) or stack.image_within(total.eta, v, total)
    image, reach = told
    arithmetic = 1e-13 * np.abs(K) @ np.abs(v)
    assert (np.abs(K @ v - image) <= reach + arithmetic).all()


def test_what_it_carries_is_needed_where_roundings_fall_the_same_way():
    # The first sum is halfway between two numbers, and is rounded down; what follows is exact.
    K = np.ones((FEW, FEW))
    stack = by_reference([K, K, K, K], "float32")
    start = np.array([0.25, 0.25, 0.25, 0.25 + SINGLE])
    then = np.array([0.25, 0.25, 0.0, 0.25 + SINGLE])  # 3/4 + u is a number of float32
    total, v = summed(stack, start).at(stack, then), np.ones(FEW)
    image, reach = stack.image_within(then, v, total)
    off = then.sum() * FEW - image
    own = stack.image_within(then, v, Sum(then, total.K))[1]
    assert (off > 0.0).all()
    assert (off <= reach).all()
    np.testing.assert_allclose(off, FEW * SINGLE, rtol=1e-6)
    np.testing.assert_allclose(reach - own, FEW * SINGLE, rtol=1e-5)  # no more than it takes


def test_kernels_that_are_taken_from_a_sum_of_originals_leave_their_rounding():
    # Halfway, and rounded down to 1 each; the even sum knows it was more.
    K = np.full((FEW, FEW), 1.0 + SINGLE)
    stack = packed([K, K, K, K], "float32", even=True)
    then = np.array([1.0, 1.0, 1.0, 0.0])
    total, v = summed(stack, np.ones(4)).at(stack, then), np.ones(FEW)
    assert total.n_moves == 1
    image, reach = stack.image_near(total, v)
    off = np.abs(3.0 * (1.0 + SINGLE) * FEW - image)
    assert (off <= reach).all()
    without = stack.image_near(Sum(then, total.K, total.carried), v)[1]
    np.testing.assert_allclose(reach - without, FEW * SINGLE, rtol=1e-5)


@every_stack
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_kernel_that_drowns_the_others_is_not_taken_away_again(rng, held, dtype):
    matrices = random_matrices(rng)
    matrices[3] *= 1e6
    stack = held(matrices, dtype)
    eta = np.full(M, 0.5)
    eta[3] = 0.0
    total = summed(stack, np.ones(M)).at(stack, eta)
    assert total.n_moves == 0  # its digits would be all that is left
    np.testing.assert_array_equal(total.K, stack.combine(eta))


@every_stack
def test_it_is_added_up_afresh_where_that_is_as_well(rng, held):
    matrices = random_matrices(rng)
    stack = held(matrices, "float32")
    *_, before = walk(rng, 0)
    far = summed(stack, before).at(stack, rng.random(M))  # all of them move
    assert far.n_moves == 0
    assert far.carried is None
    np.testing.assert_array_equal(far.K, stack.combine(far.eta))
    moves = []
    for eta in walk(rng, 20):
        far = far.at(stack, eta)
        moves.append(far.n_moves)
    assert moves.count(0) >= 4  # every fifth time at least, whatever else speaks for it
    few = held(random_matrices(rng, FEW - 1), "float32")
    assert follows(stack)
    assert not follows(few)
    assert summed(few, before).at(few, 0.5 * before).n_moves == 0


def test_zero_weights_are_no_obstacle(rng):
    stack = packed(random_matrices(rng), "float64")
    before = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0])
    after = np.array([0.0, 0.3, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0])  # one begins, one ends
    total = summed(stack, before).at(stack, after)
    assert total.n_moves == 1
    np.testing.assert_allclose(total.K, stack.combine(after), rtol=1e-12)
    nothing = summed(stack, np.zeros(M)).at(stack, after)
    np.testing.assert_array_equal(nothing.K, stack.combine(after))
