"""However the matrices are held, the verbs mean the same."""

import numpy as np
import pytest

from kernelweave.errors import IncompatiblePartsError
from kernelweave.gram import DenseGrams, KernelSource, PackedGrams, StreamedGrams
from kernelweave.gram.plain import PlainGrams
from kernelweave.gram.source import matrix_sources
from kernelweave.kernels import Centering, Gaussian, Laplacian, Linear, Polynomial
from kernelweave.kernels.fitted_scaling import ScaledForm
from kernelweave.kernels.groups import grouped

N, M = 30, 5
ETA = np.array([0.3, 0.0, 2.0, 0.1, 1.0])
KERNELS = [Gaussian(width=1.5), Linear(), Polynomial(degree=2), Laplacian(gamma=0.2), Gaussian(width=0.3)]


class Kernels:
    """Kernels of a table: sources that compute them, and their matrices."""

    def __init__(self, table, kernels=KERNELS):
        self.sources = []
        forms = [ScaledForm.plain(len(table)).times(2.0) for _ in kernels]
        forms[3] = Centering().fit(kernels[3](table)).on_training(ScaledForm.plain(len(table)))
        for places, group in grouped(kernels, table):
            own, rows = tuple(forms[p] for p in places), group.training_rows(table)
            self.sources.append(KernelSource(np.array(places), group, rows, own, len(table)))
        P = np.eye(len(table)) - 1.0 / len(table)
        self.matrices = [4.0 * kernel(table) for kernel in kernels]
        self.matrices[3] = P @ (self.matrices[3] / 4.0) @ P
        self.matrices[3] = 0.5 * (self.matrices[3] + self.matrices[3].T)


@pytest.fixture
def kernels(rng):
    return Kernels(rng.normal(size=(N, 3)))


@pytest.fixture
def matrices(kernels):
    return kernels.matrices


class Plain(PlainGrams):
    """The least a stack brings: shape, sizes, `combine` and `matvecs`."""

    def __init__(self, matrices):
        self.matrices = np.array(matrices)
        self.n_kernels, self.n_samples = self.matrices.shape[:2]
        self.sizes = np.diagonal(self.matrices, axis1=1, axis2=2).max(axis=1)

    def combine(self, eta, out=None):
        K = np.tensordot(eta, self.matrices, axes=1)
        if out is None:
            return K
        out[:] = K
        return out

    def matvecs(self, coef, needed=None):  # noqa: ARG002
        return self.matrices @ coef


def dense(kernels, **options):
    return DenseGrams(kernels.matrices, n_threads=2, **options)


def streamed(kernels, **options):
    return StreamedGrams(kernels.sources, M, len(kernels.matrices[0]), n_threads=2, **options)


def from_sources(kernels, dtype, centre):
    n = len(kernels.matrices[0])
    return PackedGrams.from_sources(kernels.sources, M, n, dtype=dtype, centre=centre, n_threads=2)


STACKS = {
    "plain": lambda kernels: Plain(kernels.matrices),
    "dense": dense,
    "dense centred": lambda kernels: dense(kernels, centre=True),
    "dense, combined float32": lambda kernels: dense(kernels, dtype="float32"),
    "dense centred, combined float32": lambda kernels: dense(kernels, centre=True, dtype="float32"),
    "streamed float64": streamed,
    "streamed float32": lambda kernels: streamed(kernels, dtype="float32"),
    "packed float64": lambda kernels: dense(kernels).packed("float64"),
    "packed float64 centred": lambda kernels: dense(kernels, centre=True).packed("float64"),
    "packed float32": lambda kernels: dense(kernels).packed("float32"),
    "packed float32 centred": lambda kernels: dense(kernels, centre=True).packed("float32"),
    "packed from sources, float64": lambda kernels: from_sources(kernels, "float64", False),
    "packed from sources, float64 centred": lambda kernels: from_sources(kernels, "float64", True),
    "packed from sources, float32": lambda kernels: from_sources(kernels, "float32", False),
    "packed from sources, float32 centred": lambda kernels: from_sources(kernels, "float32", True),
}
HELD = [name for name in STACKS if name != "plain"]


def loses_entries(name):
    return name.startswith(("packed", "streamed")) and "32" in name


def tolerance(name):
    return dict(rtol=1e-5, atol=2e-4) if "32" in name else dict(rtol=1e-10, atol=1e-9)


def summing_to_zero(rng, *shape):
    V = rng.normal(size=shape)
    return V - V.mean(axis=0)  # what makes centring harmless


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("columns", [(), (3,)])
def test_the_verbs_are_what_the_matrices_say(rng, kernels, matrices, name, columns):
    stack, near = STACKS[name](kernels), tolerance(name)
    V = summing_to_zero(rng, N, *columns)
    expected = np.tensordot(ETA, matrices, axes=1) @ V
    offset = stack.offset(ETA, V)
    combined = stack.combine(ETA)
    np.testing.assert_allclose(combined @ V + offset, expected, **near)
    np.testing.assert_array_equal(combined, combined.T)
    assert stack.combine(np.ones(M), out=combined) is combined
    np.testing.assert_array_equal(combined, stack.combine(np.ones(M)))
    np.testing.assert_allclose(np.tensordot(ETA, stack.matvecs(V), axes=1) + offset, expected, **near)
    assert stack.matvecs(V).shape == (M, *V.shape)
    energies = [0.5 * np.vdot(V, K @ V) for K in matrices]
    np.testing.assert_allclose(stack.energies(V), energies, **near)
    product, error = stack.matvec_with_error(ETA, V)
    assert product.shape == error.shape == V.shape
    np.testing.assert_allclose(product + offset, expected, **near)
    assert (np.abs(product + offset - expected) <= error + 1e-9).all()
    assert error.any() == loses_entries(name)
    assert (
        error.max() <= 1e-5 * np.abs(expected).max() or name == "streamed float32"
    )  # which promises nothing
    assert (np.abs(stack.energies(V) - energies) <= stack.energy_errors(V) + 1e-9).all()
    assert stack.energy_errors(V).any() == loses_entries(name)
    assert (stack.n_kernels, stack.n_samples) == (M, N)


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("columns", [(), (3,)])
def test_coefficients_of_nothing_give_nothing(kernels, name, columns):
    stack, V = STACKS[name](kernels), np.zeros((N, *columns))
    np.testing.assert_array_equal(stack.matvecs(V), np.zeros((M, *V.shape)))
    np.testing.assert_array_equal(stack.energies(V), 0.0)
    np.testing.assert_array_equal(stack.matvec_with_error(ETA, V)[0], V)


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_the_entries_of_products_that_are_needed_are_right(rng, kernels, matrices, name, columns, share):
    needed = rng.random((N, *columns)) < share
    V = np.where(needed & (rng.random(needed.shape) < 0.7), rng.normal(size=needed.shape), 0.0)
    V -= np.where(needed, V.sum(axis=0) / np.maximum(needed.sum(axis=0), 1), 0.0)  # sums to zero
    stack = STACKS[name](kernels)
    found = stack.matvecs(V, needed)
    assert found.shape == (M, *V.shape)
    for one, K, shift in zip(found, matrices, stack.shifts, strict=True):
        centred = K - shift[:, None] - shift
        np.testing.assert_allclose(one[needed], (centred @ V)[needed], **tolerance(name))


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("which", [[3], [4, 0, 2], [0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
def test_energies_of_some_kernels_are_asked_for_by_their_numbers(rng, kernels, matrices, name, which):
    V = summing_to_zero(rng, N, 2)
    expected = [0.5 * np.vdot(V, matrices[m] @ V) for m in which]
    found = STACKS[name](kernels).energies(V, np.array(which))
    np.testing.assert_allclose(found, expected, **tolerance(name))


@pytest.mark.parametrize("name", HELD)
def test_a_sample_is_a_stack_of_its_own(rng, kernels, matrices, name):
    rows = np.array([1, 4, 5, 17, 28])
    part = STACKS[name](kernels).sample(rows)
    few = [K[np.ix_(rows, rows)] for K in matrices]
    v, eta = summing_to_zero(rng, 5), rng.random(M)
    K = np.tensordot(eta, few, axes=1)
    np.testing.assert_allclose(part.combine(eta) @ v + part.offset(eta, v), K @ v, **tolerance(name))
    energies = np.array([0.5 * v @ k @ v for k in few])
    np.testing.assert_allclose(part.energies(v), energies, **tolerance(name))
    assert (np.abs(part.energies(v) - energies) <= part.energy_errors(v) + 1e-9).all()
    assert (part.n_kernels, part.n_samples) == (M, 5)
    assert (part.sizes >= [k.diagonal().max() * (1.0 - 1e-12) for k in few]).all()


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("which", [[3], [4, 0, 2], [0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
def test_a_subset_is_the_stack_of_these_kernels_in_this_order(rng, kernels, matrices, name, which):
    stack = STACKS[name](kernels)
    part = stack.subset(np.array(which))
    np.testing.assert_allclose(part.shifts, stack.shifts[which], atol=1e-12)
    v, eta, some = summing_to_zero(rng, N), rng.random(len(which)), [matrices[m] for m in which]
    expected = np.tensordot(eta, some, axes=1) @ v
    np.testing.assert_allclose(part.combine(eta) @ v + part.offset(eta, v), expected, **tolerance(name))
    energies = np.array([0.5 * v @ K @ v for K in some])
    np.testing.assert_allclose(part.energies(v), energies, **tolerance(name))
    assert (np.abs(part.energies(v) - energies) <= part.energy_errors(v) + 1e-9).all()
    largest = np.array([np.diagonal(K).max() for K in some])  # of centred kernels the terms are larger
    assert (part.sizes >= largest * (1.0 - 1e-12)).all()
    assert (part.sizes <= 5.0 * largest).all()
    assert (part.n_kernels, part.n_samples) == (len(which), N)
    assert part.is_rounded == ("32" in name)


def test_only_float32_rounds_beyond_double(kernels, matrices):
    largest = np.array([np.abs(K).max() for K in matrices])
    for name, make in STACKS.items():
        stack = make(kernels)
        assert stack.is_rounded == ("32" in name)
        assert (stack.storage.error > 0.0) == stack.is_rounded
        assert (stack.errors > 0).all()
        assert (stack.errors <= 2.0**-48 * largest).all()
        assert (stack.sizes >= 0.3 * largest).all()
        assert stack.shifts.any() == ("centred" in name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("plain", "5 kernels in Plain (exact)"),
        ("dense", "5 kernels as given (exact)"),
        ("dense, combined float32", "5 kernels as given (error at most 6e-08)"),
        ("streamed float64", "5 kernels streamed in float64, never stored (exact)"),
        ("streamed float32", "5 kernels streamed in float32, never stored (error at most 2e-06)"),
        ("packed float64", "5 kernels packed in float64 (exact)"),
        ("packed float32", "5 kernels packed in float32 (error at most 6e-08)"),
    ],
)
def test_storage_is_told_in_words(kernels, name, words):
    assert str(STACKS[name](kernels).storage) == words


def test_one_kernel_is_told_in_the_singular():
    assert DenseGrams([np.eye(2)]).storage.how == "1 kernel as given"


def test_a_plain_stack_says_what_it_cannot_do(matrices):
    with pytest.raises(IncompatiblePartsError, match="Plain has no subsamples; give a solver by name"):
        Plain(matrices).sample(np.arange(3))
    with pytest.raises(IncompatiblePartsError, match=r"Plain cannot be split, use Newton\(\)"):
        Plain(matrices).subset(np.arange(3))


def test_dense_matrices_are_not_copied(matrices):
    stack = DenseGrams(matrices, centre=True)
    for held, given in zip(stack.matrices, matrices, strict=True):
        assert np.shares_memory(held, given)
    for held, m in zip(stack.subset(np.array([4, 1])).matrices, (4, 1), strict=True):
        assert np.shares_memory(held, matrices[m])


SHIFTED = {
    "dense": lambda kernels, shifts: dense(kernels, centre=True, shifts=shifts),
    "streamed": lambda kernels, shifts: streamed(kernels, shifts=shifts),
}


@pytest.mark.parametrize("name", SHIFTED)
def test_stacks_of_the_same_kernels_share_their_shifts_if_told_so(rng, kernels, matrices, name):
    shifts, v = rng.normal(size=(M, N)), summing_to_zero(rng, N)
    stack = SHIFTED[name](kernels, shifts)
    assert stack.shifts is shifts
    centred = [K - s[:, None] - s for K, s in zip(matrices, shifts, strict=True)]
    expected = np.tensordot(ETA, centred, axes=1)
    np.testing.assert_allclose(stack.matvec_with_error(ETA, v)[0], expected @ v, atol=1e-10)
    np.testing.assert_allclose(stack.energies(v), [0.5 * v @ K @ v for K in matrices], atol=1e-10)
    np.testing.assert_allclose(stack.offset(ETA, v), ETA @ shifts @ v, atol=1e-12)


@pytest.mark.parametrize("name", SHIFTED)
def test_stacks_with_the_shifts_of_another_are_centred_in_every_verb(rng, kernels, matrices, name):
    shifts, v = rng.normal(size=(M, N)), summing_to_zero(rng, N)
    stack = SHIFTED[name](kernels, shifts)
    centred = np.array([K - s[:, None] - s for K, s in zip(matrices, shifts, strict=True)])
    np.testing.assert_allclose(stack.combine(ETA), np.tensordot(ETA, centred, axes=1), atol=1e-10)
    np.testing.assert_allclose(stack.matvecs(v), centred @ v, atol=1e-10)


def test_centring_is_about_the_mean_of_a_few_samples_however_kernels_are_held(kernels, matrices):
    shifts = dense(kernels, centre=True).shifts
    np.testing.assert_allclose(from_sources(kernels, "float64", True).shifts, shifts, atol=1e-12)
    for K, shift in zip(matrices, shifts, strict=True):
        centred = K - shift[:, None] - shift
        assert np.linalg.eigvalsh(centred)[0] >= -1e-12 * np.trace(K)


def test_energies_are_those_of_the_centred_matrices_for_any_coefficients(rng, kernels, matrices):
    stack, V = dense(kernels, centre=True), rng.normal(size=(N, 2))
    centred = [K - shift[:, None] - shift for K, shift in zip(matrices, stack.shifts, strict=True)]
    expected = [0.5 * np.vdot(V, K @ V) for K in centred]
    for one in (stack, stack.packed("float64")):
        np.testing.assert_allclose(one.energies(V), expected, atol=1e-9)


def test_centring_saves_the_energies_of_wide_gaussians_in_float32(rng):
    x = rng.normal(size=(200, 1))
    K = np.exp(-((x - x.T) ** 2) / (2 * 64.0**2))
    v = summing_to_zero(rng, 200)
    exact = 0.5 * v @ K @ v
    plain = DenseGrams([K]).packed("float32").energies(v)[0]
    centred = DenseGrams([K], centre=True).packed("float32").energies(v)[0]
    assert abs(centred - exact) < 1e-5 * exact
    assert abs(plain - exact) > 100 * abs(centred - exact)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_packing_from_sources_takes_many_samples_block_by_block(rng, dtype):
    n = 700  # more than two blocks of rows
    kernels = Kernels(rng.normal(size=(n, 2)))
    packed = from_sources(kernels, dtype, True)
    whole = DenseGrams(kernels.matrices, centre=True).packed(dtype)
    np.testing.assert_allclose(packed.packed, whole.packed, atol=1e-5 if dtype == "float32" else 1e-10)
    np.testing.assert_allclose(packed.roots, whole.roots, atol=1e-6)
    alone = PackedGrams.from_sources(kernels.sources, M, n, dtype=dtype, centre=True)
    np.testing.assert_array_equal(packed.packed, alone.packed)  # threads do not change a digit


def test_given_matrices_are_packed_from_their_sources_too(matrices):
    sources = matrix_sources(matrices)
    packed = PackedGrams.from_sources(sources, M, N, dtype="float64", centre=False)
    np.testing.assert_array_equal(packed.packed, DenseGrams(matrices).packed("float64").packed)
