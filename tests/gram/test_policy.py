"""How kernels are held follows from their size, the tolerance and the memory there is."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from kernelweave import KernelBank
from kernelweave.bank import PrecomputedBank
from kernelweave.gram import (
    BlockGrams,
    DenseGrams,
    JoinedGrams,
    PackedGrams,
    StoragePolicy,
    build_gram_stack,
    exact_gram_stack,
)
from kernelweave.gram.memory import budget, free_bytes, human, packed_bytes, triangle_bytes, unpacked_bytes
from kernelweave.gram.source import MatrixSource
from kernelweave.kernels import Gaussian, Laplacian
from kernelweave.solvers.warm_start import subsample_size

N, M = 30, 5
ROUGH, FINE = StoragePolicy(centre=True, tol=1e-3), StoragePolicy(centre=True, tol=1e-6)


@dataclass
class Kernels:
    """Matrices that are the user's own, or that count as computed."""

    matrices: list
    are_given: bool
    checked_with: list = field(default_factory=list)

    @property
    def n_samples(self):
        return len(self.matrices[0])

    def __len__(self):
        return len(self.matrices)

    def given_matrices(self, n_threads=1):
        self.checked_with.append(n_threads)
        return self.matrices if self.are_given else None

    def sources(self):
        return [MatrixSource(self.matrices)]


@dataclass
class Untouchable:
    """Kernels of which nothing but their number may be asked."""

    n_samples: int
    n_kernels: int

    def __len__(self):
        return self.n_kernels

    def given_matrices(self, n_threads=1):  # noqa: ARG002
        raise AssertionError("a matrix was asked for")

    def sources(self):
        raise AssertionError("a source was asked for")


@pytest.fixture
def matrices(rng):
    return [A @ A.T for A in rng.normal(size=(M, N, 12))]


@pytest.fixture
def many(rng):
    """So many samples that float32 is worth it, and matrices are read where they are."""
    X = rng.normal(size=(1000, 2))
    return [X @ X.T, X @ X.T + 1.0, (X @ X.T + 1.0) ** 2]


@pytest.mark.parametrize(
    ("n", "m", "tol", "expected"),
    [(60, 8, 1e-3, "float64"), (2000, 50, 1e-3, "float32"), (2000, 50, 1e-6, "float64")],
)
def test_precision_follows_size_and_tolerance(n, m, tol, expected):
    assert StoragePolicy(centre=True, tol=tol).preferred_dtype(n, m) == expected


def test_the_users_dtype_wins(matrices):
    assert replace(FINE, dtype="float32").preferred_dtype(60, 8) == "float32"
    assert replace(ROUGH, dtype="float64").preferred_dtype(2000, 50) == "float64"
    stack = build_gram_stack(Kernels(matrices, True), replace(FINE, dtype="float32"))
    assert isinstance(stack, PackedGrams)
    assert stack.is_rounded


def test_an_unknown_dtype_is_named():
    with pytest.raises(ValueError, match="auto, float32, float64; got 'float16'"):
        build_gram_stack(Untouchable(60, 8), replace(FINE, dtype="float16"))


def test_the_users_matrices_are_checked_on_all_threads_and_held_by_reference(matrices):
    kernels = Kernels(matrices, True)
    stack = build_gram_stack(kernels, replace(FINE, n_threads=2))
    assert isinstance(stack, DenseGrams)
    assert kernels.checked_with == [2]
    assert (stack.centre, stack.n_threads, stack.is_rounded) == (True, 2, False)
    for held, given in zip(stack.matrices, matrices, strict=True):
        assert np.shares_memory(held, given)


def test_given_matrices_of_many_samples_are_packed_for_several_problems_only(many):
    kernels = Kernels(many, True)
    one = build_gram_stack(kernels, ROUGH)
    assert isinstance(one, DenseGrams)
    assert one.is_rounded
    several = replace(ROUGH, several_problems=True)
    assert isinstance(build_gram_stack(kernels, several), PackedGrams)
    assert isinstance(build_gram_stack(kernels, replace(several, working_set=True)), DenseGrams)
    assert isinstance(build_gram_stack(kernels, replace(several, tol=1e-6)), DenseGrams)
    short = replace(several, memory_limit=packed_bytes(1000, 3, 4) - 1)
    assert isinstance(build_gram_stack(kernels, short), DenseGrams)
    fewer = Kernels([K[:900, :900].copy() for K in many], True)
    assert isinstance(build_gram_stack(fewer, ROUGH), PackedGrams)


@pytest.mark.parametrize("policy", [ROUGH, FINE])
def test_where_memory_is_short_kernels_are_computed_again(many, policy):
    kernels, size = Kernels(many, False), 4 if policy is ROUGH else 8
    packed, unpacked = packed_bytes(1000, 3, size), unpacked_bytes(1000, 3, size)
    stack = build_gram_stack(kernels, replace(policy, memory_limit=packed))
    assert isinstance(stack, PackedGrams)
    assert stack.packed.itemsize == size
    for limit in (packed - 1, unpacked):
        again = build_gram_stack(kernels, replace(policy, memory_limit=limit))
        assert isinstance(again, BlockGrams)
        assert again.combine(np.ones(3)).itemsize == size
    with pytest.raises(MemoryError, match="even when only their combination is held"):
        build_gram_stack(kernels, replace(policy, memory_limit=unpacked - 1))


def test_too_little_memory_is_refused_before_anything_is_read_or_computed():
    with pytest.raises(MemoryError, match=r"50 kernels of 20000 samples need .* GB.*but 1 GB may be used"):
        build_gram_stack(Untouchable(20_000, 50), replace(ROUGH, memory_limit=1e9))


@pytest.mark.parametrize("size", [1e26, 1e-28])
@pytest.mark.parametrize("are_given", [True, False])
def test_entries_beyond_float32_are_held_in_float64_and_need_the_memory_for_it(many, size, are_given):
    kernels = Kernels([size * K for K in many], are_given)
    assert not build_gram_stack(kernels, ROUGH).is_rounded
    few = build_gram_stack(kernels, replace(ROUGH, memory_limit=unpacked_bytes(1000, 3, 8)))
    assert isinstance(few, DenseGrams if are_given else BlockGrams)
    with pytest.raises(MemoryError, match="in float64 even when"):
        build_gram_stack(kernels, replace(ROUGH, memory_limit=unpacked_bytes(1000, 3, 8) - 1))


def test_a_kernel_of_zeros_fits_in_float32(many):
    assert build_gram_stack(Kernels([*many, np.zeros((1000, 1000))], False), ROUGH).is_rounded


@pytest.mark.parametrize(("n_kernels", "held"), [(5, 5), (400, 256)])
def test_a_working_set_is_paid_for_before_kernels_are_computed(matrices, n_kernels, held):
    kernels = Kernels([matrices[m % M] for m in range(n_kernels)], False)
    needed = {size: triangle_bytes(N, held, size) + unpacked_bytes(N, n_kernels, size) for size in (4, 8)}

    def dtype(limit, wanted="auto"):
        policy = replace(ROUGH, working_set=True, memory_limit=limit, dtype=wanted)
        stack = build_gram_stack(kernels, policy)
        assert isinstance(stack, BlockGrams)
        return stack.combine(np.ones(n_kernels)).dtype

    assert dtype(needed[8]) == dtype(needed[8], "float32") == np.float64
    assert dtype(needed[4], "float32") == np.float32
    for limit, wanted in ((needed[8] - 1, "float64"), (needed[4] - 1, "float32")):
        with pytest.raises(MemoryError, match=f"{n_kernels} kernels of 30 samples"):
            dtype(limit, wanted)


def test_bases_begin_at_a_thousand_samples(rng):
    bank = KernelBank.per_feature(widths=(0.5, 4.0), degrees=(2,))
    X = rng.normal(size=(1000, 4))
    fitted = bank.fit(X)
    assert isinstance(build_gram_stack(fitted, ROUGH), JoinedGrams)
    assert isinstance(build_gram_stack(bank.fit(X[:-1]), ROUGH), PackedGrams)
    for change in ({"several_problems": True}, {"tol": 1e-5}, {"dtype": "float64"}, {"dtype": "float32"}):
        assert isinstance(build_gram_stack(fitted, replace(ROUGH, **change)), PackedGrams)
    assert isinstance(build_gram_stack(fitted, replace(ROUGH, working_set=True)), BlockGrams)
    rough = KernelBank([Laplacian(), Gaussian(width=1.0), Gaussian(width=2.0)]).fit(X[:, :1])
    assert isinstance(build_gram_stack(rough, ROUGH), PackedGrams)


@pytest.mark.parametrize("are_given", [True, False])
@pytest.mark.parametrize("centre", [True, False])
def test_the_exact_kernels_are_centred_as_those_they_stand_for(rng, matrices, are_given, centre):
    kernels = Kernels(matrices, are_given)
    rough = build_gram_stack(kernels, StoragePolicy(centre=centre, tol=1e-3, dtype="float32", n_threads=2))
    exact = exact_gram_stack(kernels, rough)
    assert isinstance(exact, DenseGrams if are_given else BlockGrams)
    assert (exact.is_rounded, exact.n_threads) == (False, 2)
    v, eta = rng.normal(size=N), rng.random(M)
    v -= v.mean()
    np.testing.assert_array_equal(exact.offset(eta, v), rough.offset(eta, v))
    np.testing.assert_allclose(exact.energies(v), [0.5 * v @ K @ v for K in matrices], rtol=1e-10)
    product, error = rough.matvec_with_error(eta, v)
    assert (np.abs(exact.matvec_with_error(eta, v)[0] - product) <= error + 1e-12).all()


@pytest.mark.parametrize("make", [lambda Ks: Ks, np.dstack])
def test_a_precomputed_bank_is_held_without_a_copy_where_its_matrices_lie_in_one_piece(matrices, make):
    stack = build_gram_stack(PrecomputedBank().fit(make(matrices)), FINE)
    assert isinstance(stack, DenseGrams if make(matrices) is matrices else PackedGrams)
    np.testing.assert_allclose(
        stack.combine(np.ones(M)) + np.add.outer(stack.shifts.sum(axis=0), stack.shifts.sum(axis=0)),
        sum(matrices),
        atol=1e-12,
    )


def test_the_estimate_covers_what_is_really_taken(matrices):
    stack = DenseGrams(matrices, centre=True).packed("float32")
    assert stack.packed.nbytes == triangle_bytes(N, M, 4) == packed_bytes(N, M, 4) - unpacked_bytes(N, M, 4)
    beside = (stack.shifts, stack.sizes, stack.roots, stack.errors, stack.combine(np.ones(M)))
    assert sum(one.nbytes for one in beside) <= unpacked_bytes(N, M, 4)


@pytest.mark.parametrize("n", [1000, 2000, 16_000])
@pytest.mark.parametrize("n_kernels", [1, 50, 2000])
def test_the_estimate_covers_the_subsample_a_start_is_looked_for_on(n, n_kernels):
    own = 8 * 8 * n * n_kernels + 4 * n**2 + (32 << 20)  # per kernel, the combined matrix, rows being made
    subsample = triangle_bytes(subsample_size(n, n_kernels), n_kernels, 8)
    assert unpacked_bytes(n, n_kernels, 4) - own >= 0.99 * subsample
    assert unpacked_bytes(999, 5, 4) == 8 * 8 * 999 * 5 + 4 * 999**2 + (32 << 20)


def test_without_a_limit_the_budget_is_part_of_what_is_free():
    assert 0 < budget(None) < free_bytes()
    assert budget(123.0) == 123


@pytest.mark.parametrize(
    ("n", "text"), [(12, "12 B"), (3_400, "3.4 KB"), (5e6, "5 MB"), (1.25e10, "12.5 GB")]
)
def test_bytes_are_written_as_people_read_them(n, text):
    assert human(int(n)) == text
