"""However the matrices are held, the verbs mean the same."""

import numpy as np
import pytest

from kernelweave.errors import IncompatiblePartsError
from kernelweave.gram import BlockGrams, BlockSource, DenseGrams, PackedGrams
from kernelweave.gram.plain import PlainGrams
from kernelweave.gram.source import MatrixSource, renumbered
from kernelweave.kernels import UnitTrace

N, M = 30, 5
ETA = np.array([0.3, 0.0, 2.0, 0.1, 1.0])


@pytest.fixture
def matrices(rng):
    return tuple(A @ A.T for A in rng.normal(size=(M, N, 12)))


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


def dense(Ks, **options):
    return DenseGrams(Ks, n_threads=2, **options)


def blockwise(Ks, **options):
    return BlockGrams([MatrixSource(Ks)], M, len(Ks[0]), n_threads=2, **options)


def from_blocks(Ks, dtype, centre):
    return PackedGrams.from_blocks([MatrixSource(Ks)], M, len(Ks[0]), dtype=dtype, centre=centre, n_threads=2)


STACKS = {
    "plain": Plain,
    "dense": dense,
    "dense centred": lambda Ks: dense(Ks, centre=True),
    "dense, combined float32": lambda Ks: dense(Ks, dtype="float32"),
    "dense centred, combined float32": lambda Ks: dense(Ks, centre=True, dtype="float32"),
    "blocks": blockwise,
    "blocks centred": lambda Ks: blockwise(Ks, centre=True),
    "blocks, combined float32": lambda Ks: blockwise(Ks, dtype="float32"),
    "blocks centred, combined float32": lambda Ks: blockwise(Ks, centre=True, dtype="float32"),
    "packed float64": lambda Ks: dense(Ks).packed("float64"),
    "packed float64 centred": lambda Ks: dense(Ks, centre=True).packed("float64"),
    "packed float32": lambda Ks: dense(Ks).packed("float32"),
    "packed float32 centred": lambda Ks: dense(Ks, centre=True).packed("float32"),
    "packed from blocks, float64": lambda Ks: from_blocks(Ks, "float64", False),
    "packed from blocks, float64 centred": lambda Ks: from_blocks(Ks, "float64", True),
    "packed from blocks, float32": lambda Ks: from_blocks(Ks, "float32", False),
    "packed from blocks, float32 centred": lambda Ks: from_blocks(Ks, "float32", True),
}


def loses_entries(name):
    return name.startswith("packed") and "32" in name


def tolerance(name):
    return dict(rtol=1e-6, atol=1e-4) if "32" in name else dict(rtol=1e-10, atol=1e-9)


def summing_to_zero(rng, *shape):
    V = rng.normal(size=shape)
    return V - V.mean(axis=0)  # what makes centring harmless


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("columns", [(), (3,)])
def test_the_verbs_are_what_the_matrices_say(rng, matrices, name, columns):
    stack, near = STACKS[name](matrices), tolerance(name)
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
    assert error.max() <= 1e-5 * np.abs(expected).max()
    assert (np.abs(stack.energies(V) - energies) <= stack.energy_errors(V) + 1e-9).all()
    assert stack.energy_errors(V).any() == loses_entries(name)
    assert (stack.n_kernels, stack.n_samples) == (M, N)


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_the_entries_of_products_that_are_needed_are_right(rng, matrices, name, columns, share):
    needed = rng.random((N, *columns)) < share
    V = np.where(needed & (rng.random(needed.shape) < 0.7), rng.normal(size=needed.shape), 0.0)
    V -= np.where(needed, V.sum(axis=0) / np.maximum(needed.sum(axis=0), 1), 0.0)  # sums to zero
    stack = STACKS[name](matrices)
    found = stack.matvecs(V, needed)
    assert found.shape == (M, *V.shape)
    for one, K, shift in zip(found, matrices, stack.shifts, strict=True):
        centred = K - shift[:, None] - shift
        np.testing.assert_allclose(one[needed], (centred @ V)[needed], **tolerance(name))


@pytest.mark.parametrize("name", [name for name in STACKS if name != "plain"])
def test_a_sample_is_a_stack_of_its_own(rng, matrices, name):
    rows = np.array([1, 4, 5, 17, 28])
    part = STACKS[name](matrices).sample(rows)
    few = [K[np.ix_(rows, rows)] for K in matrices]
    v, eta = summing_to_zero(rng, 5), rng.random(M)
    K = np.tensordot(eta, few, axes=1)
    np.testing.assert_allclose(part.combine(eta) @ v + part.offset(eta, v), K @ v, **tolerance(name))
    energies = np.array([0.5 * v @ k @ v for k in few])
    np.testing.assert_allclose(part.energies(v), energies, **tolerance(name))
    assert (np.abs(part.energies(v) - energies) <= part.energy_errors(v) + 1e-9).all()
    assert (part.n_kernels, part.n_samples) == (M, 5)
    assert (part.sizes >= [k.diagonal().max() for k in few]).all()


@pytest.mark.parametrize("name", [name for name in STACKS if name != "plain"])
@pytest.mark.parametrize("which", [[3], [4, 0, 2], [0, 1, 2, 3, 4]])
def test_a_subset_is_the_stack_of_these_kernels_in_this_order(rng, matrices, name, which):
    stack = STACKS[name](matrices)
    part = stack.subset(np.array(which))
    np.testing.assert_allclose(part.shifts, stack.shifts[which], atol=1e-12)
    v, eta, some = summing_to_zero(rng, N), rng.random(len(which)), [matrices[m] for m in which]
    expected = np.tensordot(eta, some, axes=1) @ v
    np.testing.assert_allclose(part.combine(eta) @ v + part.offset(eta, v), expected, **tolerance(name))
    energies = np.array([0.5 * v @ K @ v for K in some])
    np.testing.assert_allclose(part.energies(v), energies, **tolerance(name))
    assert (np.abs(part.energies(v) - energies) <= part.energy_errors(v) + 1e-9).all()
    np.testing.assert_allclose(part.sizes, [np.diagonal(K).max() for K in some])
    assert (part.n_kernels, part.n_samples) == (len(which), N)
    assert part.is_rounded == ("32" in name)


def test_only_float32_rounds_beyond_double(matrices):
    largest = np.array([np.abs(K).max() for K in matrices])
    for name, make in STACKS.items():
        stack = make(matrices)
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
        ("blocks", "5 kernels read or made anew for every pass (exact)"),
        ("packed float64", "5 kernels packed in float64 (exact)"),
        ("packed float32", "5 kernels packed in float32 (error at most 6e-08)"),
    ],
)
def test_storage_is_told_in_words(matrices, name, words):
    assert str(STACKS[name](matrices).storage) == words


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


@pytest.mark.parametrize("make", [dense, blockwise])
def test_stacks_of_the_same_kernels_share_their_shifts_if_told_so(rng, matrices, make):
    shifts, v = rng.normal(size=(M, N)), summing_to_zero(rng, N)
    stack = make(matrices, centre=True, shifts=shifts)
    assert stack.shifts is shifts
    expected = np.tensordot(ETA, [K - s[:, None] - s for K, s in zip(matrices, shifts, strict=True)], axes=1)
    np.testing.assert_allclose(stack.combine(ETA), expected, atol=1e-12)
    np.testing.assert_allclose(stack.matvec_with_error(ETA, v)[0], expected @ v, atol=1e-10)


def test_centring_is_about_the_mean_of_a_few_samples_however_kernels_are_held(matrices):
    shifts = dense(matrices, centre=True).shifts
    np.testing.assert_allclose(blockwise(matrices, centre=True).shifts, shifts, atol=1e-12)
    for K, shift in zip(matrices, shifts, strict=True):
        centred = K - shift[:, None] - shift
        assert np.linalg.eigvalsh(centred)[0] >= -1e-12 * np.trace(K)
        assert np.trace(centred) < np.trace(K)


def test_energies_are_those_of_the_centred_matrices_for_any_coefficients(rng, matrices):
    stack, V = dense(matrices, centre=True), rng.normal(size=(N, 2))
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


@pytest.mark.parametrize("step", [1, 4, 30])
def test_a_stack_may_be_made_in_blocks_of_any_size(rng, matrices, monkeypatch, step):
    monkeypatch.setattr(BlockSource, "block_entries", N * step)
    v, eta, source = summing_to_zero(rng, N), rng.random(M), MatrixSource(matrices)
    assert len(list(source.row_blocks())) == -(-N // step)
    K = np.tensordot(eta, matrices, axes=1)
    for stack in (from_blocks(matrices, "float64", True), blockwise(matrices, centre=True)):
        np.testing.assert_allclose(stack.combine(eta) @ v + stack.offset(eta, v), K @ v, rtol=1e-9)
        np.testing.assert_array_equal(stack.combine(eta), stack.combine(eta).T)
        np.testing.assert_allclose(stack.energies(v), [0.5 * v @ k @ v for k in matrices], rtol=1e-9)


def test_blockwise_passes_are_the_same_every_time(rng, matrices):
    v = rng.normal(size=N)
    answers = {
        BlockGrams([MatrixSource(matrices)], M, N, n_threads=4).matvecs(v).tobytes() for _ in range(20)
    }
    assert len(answers) == 1


def test_a_source_of_matrices_scales_them_block_by_block(matrices):
    scalings = [UnitTrace().fit(matrices[0]), None, *[UnitTrace().fit(K) for K in matrices[2:]]]
    source = MatrixSource(matrices, scalings)
    rows, columns = np.array([3, 7]), slice(5, 20)
    expected = [K if m == 1 else K / np.trace(K) for m, K in enumerate(matrices)]
    for m, block in source.block(rows, columns):
        np.testing.assert_allclose(block, expected[m][rows, columns], rtol=1e-14)
    for m, diagonal in source.diagonals():
        np.testing.assert_allclose(diagonal, np.diagonal(expected[m]), rtol=1e-14)


def test_sources_are_renumbered_in_the_order_asked_for(matrices):
    (source,) = renumbered([MatrixSource(matrices)], [4, 0])
    assert sorted(source.kernels) == [0, 1]
    blocks = dict(source.block(slice(0, N), slice(0, N)))
    np.testing.assert_array_equal(blocks[0], matrices[4])
    np.testing.assert_array_equal(blocks[1], matrices[0])
    np.testing.assert_array_equal(dict(source.diagonals())[1], np.diagonal(matrices[0]))
    assert [m for m, _ in source.block(slice(0, 2), slice(0, 2), {1})] == [1]
