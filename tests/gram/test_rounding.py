"""What rounding to float32 can do to energies and products is never more than what is allowed for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave.gram import DenseGrams, KernelSource, StreamedGrams
from kernelweave.gram.rounding import SINGLE, float32_energy_error
from kernelweave.kernels import Gaussian, InverseDistance, Laplacian, Linear, Polynomial
from kernelweave.kernels.fitted_scaling import ScaledForm
from kernelweave.kernels.groups import grouped


def held(matrices, centre=False):
    return DenseGrams(matrices, centre=centre).packed("float32")


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
    stack = held([K], centre)
    true = 0.5 * np.vdot(V, K @ V)
    rounding = 1e-13 * K.max() * np.abs(V).sum() ** 2  # of this test's own arithmetic
    assert true <= stack.energies(V)[0] + stack.energy_errors(V)[0] + rounding
    eta = np.array([3.0])
    product, error = stack.matvec_with_error(eta, V)
    off = np.abs(3.0 * K @ V - product - stack.offset(eta, V))
    assert (off <= error + 3.0 * rounding / np.abs(V).sum()).all()


@given(seed=st.integers(0, 10_000), n_kernels=st.integers(1, 40), size=st.floats(-44.0, 30.0))
def test_the_product_with_a_sum_of_kernels_is_within_what_is_allowed(seed, n_kernels, size):
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(4, 3)), 5, axis=0)
    matrices = [10.0**size * (X @ np.diag(rng.random(3)) @ X.T + rng.random()) for _ in range(n_kernels)]
    eta, v = rng.random(n_kernels), rng.normal(size=20) + 3.0 * rng.random()
    K = np.tensordot(eta.astype(np.longdouble), np.array(matrices, dtype=np.longdouble), axes=1)
    product, error = held(matrices).matvec_with_error(eta, v)
    assert (np.abs(K @ v - product) <= error + 1e-13 * np.abs(K) @ np.abs(v)).all()


def test_the_bounds_are_reached_when_every_rounding_falls_the_worst_way():
    K = np.full((9, 9), 1.0 + SINGLE)  # halfway: rounded down to 1
    v = np.ones(9)
    lost = 0.5 * v @ K @ v - held([K]).energies(v)[0]
    assert lost == pytest.approx(float32_energy_error(np.sqrt(np.diagonal(K))[None], v)[0], rel=1e-6)
    eta = np.array([2.0])
    product, error = held([K]).matvec_with_error(eta, v)
    np.testing.assert_allclose(2.0 * K @ v - product, error, rtol=1e-6)


STREAMED = [
    Gaussian(width=1.0),
    Laplacian(gamma=1.0),
    InverseDistance(gamma=1.0),
    Polynomial(degree=2),
    Linear(),
]


@pytest.mark.parametrize("kernel", STREAMED, ids=repr)
@pytest.mark.parametrize("spread", [1e-2, 1.0, 1e3, 1e5])
@pytest.mark.parametrize("near", [1e-3, 1.0])
@pytest.mark.parametrize("columns", [(), (2,)])
def test_true_energies_lie_below_the_streamed_ones_and_what_is_allowed(rng, kernel, spread, near, columns):
    # Samples that are near to each other and far from the others are where most digits are lost.
    X = np.repeat(spread * rng.normal(size=(15, 2)), 2, axis=0) + near * rng.normal(size=(30, 2))
    V = rng.uniform(0.5, 1.0, size=(30, *columns))
    V[::2] *= -1.0
    V -= V.mean(axis=0)
    [(_, group)] = grouped([kernel], X)
    source = KernelSource(np.array([0]), group, group.training_rows(X), (ScaledForm.plain(30),), 30)
    stack = StreamedGrams([source], 1, 30, dtype="float32")
    true = 0.5 * np.vdot(V, kernel(X) @ V)
    assert true <= stack.energies(V)[0] + stack.energy_errors(V)[0] + 1e-12 * np.abs(kernel(X)).max()
