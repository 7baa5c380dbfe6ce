"""What rounding to float32 can do to energies and images is never more than what is allowed for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave.gram import MatrixSource, PackedGrams
from kernelweave.gram.rounding import SINGLE, of_energies


def held(K, centre):
    return PackedGrams.pack([MatrixSource([K])], 1, len(K), "float32", centre)


@given(
    seed=st.integers(0, 10_000),
    copies=st.integers(1, 30),
    size=st.floats(-44.0, 30.0),
    centre=st.booleans(),
    columns=st.sampled_from([(), (2,)]),
)
def test_true_energies_lie_below_the_stored_ones_and_what_is_allowed(seed, copies, size, centre, columns):
    rng = np.random.default_rng(seed)
    # Copies of a few samples: their roundings all fall the same way and add up.
    X = np.repeat(rng.normal(size=(4, 3)), copies, axis=0)
    K = 10.0**size * (X @ X.T + rng.random())
    V = rng.normal(size=(len(K), *columns)) + 3.0 * rng.random()
    V -= V.mean(axis=0) if centre else 0.0
    stack = held(K, centre)
    true = 0.5 * np.vdot(V, K @ V)
    rounding = 1e-13 * K.max() * np.abs(V).sum() ** 2  # of this test's own arithmetic
    assert true <= stack.energies(V)[0] + stack.energy_errors(V)[0] + rounding
    image, reach = stack.image_within(np.array([3.0]), V)
    off = np.abs(3.0 * K @ V - image - stack.offset(np.array([3.0]), V))
    assert (off <= reach + 3.0 * rounding / np.abs(V).sum()).all()


def test_the_bound_is_reached_when_every_rounding_falls_the_worst_way():
    K = np.full((9, 9), 1.0 + SINGLE)  # halfway: rounded down to 1
    v = np.ones(9)
    lost = 0.5 * v @ K @ v - held(K, False).energies(v)[0]
    assert lost == pytest.approx(of_energies(np.sqrt(np.diagonal(K))[None], v)[0], rel=1e-6)
    eta = np.array([2.0])
    image, reach = held(K, False).image_within(eta, v)
    np.testing.assert_allclose(2.0 * K @ v - image, reach, rtol=1e-6)
