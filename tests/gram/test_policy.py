"""How kernels are held follows from their size, the tolerance and the memory there is."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from kernelweave import KernelBank, MKLClassifier
from kernelweave.bank import PrecomputedBank
from kernelweave.gram import (
    DenseGrams,
    PackedGrams,
    SolverSize,
    StoragePolicy,
    StreamedGrams,
    build_gram_stack,
    exact_gram_stack,
)
from kernelweave.gram.memory import (
    block_samples,
    packed_bytes,
    streamed_bytes,
    triangle_bytes,
    unpacked_bytes,
)
from kernelweave.gram.source import matrix_sources
from kernelweave.kernels import ChiSquared, Gaussian, Linear, Polynomial
from kernelweave.learners import Fisher
from kernelweave.solvers.warm_start import subsample_size

N, M = 30, 5
ROUGH, FINE = StoragePolicy(centre=True, tol=1e-3), StoragePolicy(centre=True, tol=1e-6)


@dataclass
class Kernels:
    """Matrices that are the user's own, or that count as computed."""

    matrices: list
    holds_matrices: bool
    checked_with: list = field(default_factory=list)

    @property
    def n_samples(self):
        return len(self.matrices[0])

    def __len__(self):
        return len(self.matrices)

    def given_matrices(self, n_threads=1):
        assert self.holds_matrices
        self.checked_with.append(n_threads)
        return self.matrices

    def sources(self):
        return matrix_sources(self.matrices)


@dataclass
class Untouchable:
    """Matrices of the user of which nothing but their number may be asked."""

    n_samples: int
    n_kernels: int
    holds_matrices: bool = True

    def __len__(self):
        return self.n_kernels

    def given_matrices(self, n_threads=1):  # noqa: ARG002
        raise AssertionError("a matrix was asked for")

    def sources(self):
        raise AssertionError("a source was asked for")


def fitted(n):
    """Three kernels of a table of this many samples: two sources of two columns."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    return KernelBank([Gaussian(width=1.0), Gaussian(width=3.0), Linear()]).fit(X)


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
    assert StoragePolicy(centre=True, tol=tol).stored_dtype(n, m) == expected


def test_the_users_dtype_wins(matrices):
    assert replace(FINE, dtype="float32").stored_dtype(60, 8) == "float32"
    assert replace(ROUGH, dtype="float64").stored_dtype(2000, 50) == "float64"
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
        assert isinstance(again, StreamedGrams)
        assert again.may_combine
        assert again.combine(np.ones(3)).itemsize == size
    with pytest.raises(MemoryError, match="even when only their combination is held"):
        build_gram_stack(kernels, replace(policy, memory_limit=unpacked - 1))


@pytest.mark.parametrize("streams_from", [None, 10, 100_000])
def test_kernels_of_a_small_table_are_packed_whether_or_not_they_could_be_streamed(streams_from):
    stack = build_gram_stack(fitted(60), replace(ROUGH, streams_from=streams_from, n_threads=2))
    assert isinstance(stack, PackedGrams)
    assert (stack.centre, stack.n_threads, stack.is_rounded) == (True, 2, False)


@pytest.mark.parametrize(("tol", "streamed", "combined"), [(1e-3, 4, 4), (1e-5, 4, 8), (1e-6, 8, 8)])
def test_kernels_of_a_large_table_are_computed_in_every_pass(tol, streamed, combined):
    kernels, policy = fitted(2001), StoragePolicy(centre=True, tol=tol, n_threads=2)
    for streams_from in (None, 2002):  # there is no solver without a matrix, or it does not pay yet
        stack = build_gram_stack(kernels, replace(policy, streams_from=streams_from))
        assert isinstance(stack, StreamedGrams)
        assert (stack.may_combine, stack.dtype.itemsize, stack.n_threads) == (True, combined, 2)
    stack = build_gram_stack(kernels, replace(policy, streams_from=2001))
    assert isinstance(stack, StreamedGrams)
    assert (stack.may_combine, stack.dtype.itemsize, stack.n_threads) == (False, streamed, 2)


def test_kernels_that_take_long_to_compute_are_stored_if_they_fit(rng):
    X = np.abs(rng.normal(size=(300, 2)))
    slow = KernelBank([Gaussian(width=1.0), ChiSquared(gamma=1.0)]).fit(X)
    fast = KernelBank([Gaussian(width=1.0), Linear(), Polynomial(degree=2)]).fit(X)
    few = replace(ROUGH, stored_up_to=299, streams_from=100)
    assert isinstance(build_gram_stack(slow, few), PackedGrams)
    assert isinstance(build_gram_stack(fast, few), StreamedGrams)
    assert isinstance(build_gram_stack(fast, replace(few, stored_up_to=300)), PackedGrams)
    several = replace(few, several_problems=True)  # then storing pays for twice as many samples
    assert isinstance(build_gram_stack(fast, replace(several, stored_up_to=150)), PackedGrams)
    assert isinstance(build_gram_stack(fast, replace(several, stored_up_to=149)), StreamedGrams)
    short = replace(few, streams_from=None, memory_limit=packed_bytes(300, 2, 8) - 1)
    assert isinstance(build_gram_stack(slow, short), StreamedGrams)


def test_where_not_even_the_combined_matrix_fits_a_solver_without_it_has_to_do():
    n, kernels = 10_000, fitted(10_000)
    combined, streamed = unpacked_bytes(n, 3, 4) + 8 * 4 * n, streamed_bytes(n, 3, 4)
    assert streamed < combined / 2
    late = replace(ROUGH, streams_from=1_000_000)  # it does not pay by itself
    stack = build_gram_stack(kernels, replace(late, memory_limit=combined))
    assert (type(stack), stack.may_combine) == (StreamedGrams, True)
    for limit in (combined - 1, streamed):
        stack = build_gram_stack(kernels, replace(late, memory_limit=limit))
        assert (type(stack), stack.may_combine) == (StreamedGrams, False)
    with pytest.raises(MemoryError, match=r"3 kernels of 10000 samples need .* even when none is stored"):
        build_gram_stack(kernels, replace(late, memory_limit=streamed - 1))
    with pytest.raises(MemoryError, match="even when only their combination is held"):
        build_gram_stack(kernels, replace(ROUGH, memory_limit=combined - 1))


def test_too_little_memory_is_refused_before_anything_is_read():
    with pytest.raises(MemoryError, match=r"50 kernels of 20000 samples need .* GB.*but 1 GB may be used"):
        build_gram_stack(Untouchable(20_000, 50), replace(ROUGH, memory_limit=1e9))


def test_a_refusal_says_what_is_needed_and_what_there_is():
    kernels = fitted(20_000)
    with pytest.raises(
        MemoryError, match=r"3 kernels of 20000 samples need 1.*GB in float32.*1 GB may be used"
    ):
        build_gram_stack(kernels, replace(ROUGH, memory_limit=1e9))
    with pytest.raises(MemoryError, match=r"need 3.*GB in float64 .*\(1.*GB in float32\)"):
        build_gram_stack(kernels, replace(FINE, memory_limit=1e9))
    with pytest.raises(
        MemoryError, match=r"3 kernels of 20000 samples need .* MB even when .* 10 MB may be used"
    ):
        build_gram_stack(kernels, replace(ROUGH, memory_limit=1e7, streams_from=1))


@pytest.mark.parametrize("size", [1e26, 1e-28])
def test_given_entries_beyond_float32_are_held_in_float64_and_need_the_memory_for_it(many, size):
    kernels = Kernels([size * K for K in many], True)
    assert not build_gram_stack(kernels, ROUGH).is_rounded
    few = build_gram_stack(kernels, replace(ROUGH, memory_limit=unpacked_bytes(1000, 3, 8)))
    assert isinstance(few, DenseGrams)
    with pytest.raises(MemoryError, match="in float64 even when"):
        build_gram_stack(kernels, replace(ROUGH, memory_limit=unpacked_bytes(1000, 3, 8) - 1))


HOLDERS = {
    "packed": replace(ROUGH, stored_up_to=10_000),
    "combined": replace(ROUGH, stored_up_to=10),
    "streamed": replace(ROUGH, stored_up_to=10, streams_from=10),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("size", [1e-30, 1e-21, 1.0, 1e5, 1e16, 1e40])
def test_kernels_of_columns_of_any_size_are_held_in_a_type_that_can_hold_them(holder, size):
    X = np.random.default_rng(0).normal(size=(900, 2))
    kernels = KernelBank([Linear(), Gaussian(), Polynomial(degree=2, offset=0.0)]).fit(size * X)
    stack = build_gram_stack(kernels, HOLDERS[holder])
    unit = KernelBank([Linear(), Gaussian(), Polynomial(degree=2, offset=0.0)]).fit(X)
    v = np.where(np.arange(900) % 2, 1.0, -1.0)
    units = np.array([size**2, 1.0, size**4])
    for m, K in enumerate(unit.grams()):
        expected = units[m] * 0.5 * v @ K @ v
        assert stack.energies(v)[m] == pytest.approx(expected, rel=1e-4, abs=0.0)
    assert stack.is_rounded or size != 1.0


def test_a_kernel_of_zeros_fits_in_float32(many):
    assert build_gram_stack(Kernels([*many, np.zeros((1000, 1000))], False), ROUGH).is_rounded


@pytest.mark.parametrize(("n_kernels", "held"), [(5, 5), (400, 256)])
def test_a_working_set_is_paid_for_before_kernels_are_computed(matrices, n_kernels, held):
    kernels = Kernels([matrices[m % M] for m in range(n_kernels)], False)
    needed = {size: triangle_bytes(N, held, size) + unpacked_bytes(N, n_kernels, size) for size in (4, 8)}

    def dtype(limit, wanted="auto"):
        policy = replace(ROUGH, working_set=True, memory_limit=limit, dtype=wanted)
        stack = build_gram_stack(kernels, policy)
        assert isinstance(stack, StreamedGrams)
        return stack.combine(np.ones(n_kernels)).dtype

    assert dtype(needed[8]) == dtype(needed[8], "float32") == np.float64
    assert dtype(needed[4], "float32") == np.float32
    for limit, wanted in ((needed[8] - 1, "float64"), (needed[4] - 1, "float32")):
        with pytest.raises(MemoryError, match=f"{n_kernels} kernels of 30 samples"):
            dtype(limit, wanted)


@pytest.mark.parametrize("are_given", [True, False])
@pytest.mark.parametrize("centre", [True, False])
def test_the_exact_kernels_are_centred_as_those_they_stand_for(rng, matrices, are_given, centre):
    kernels = Kernels(matrices, are_given)
    rough = build_gram_stack(kernels, StoragePolicy(centre=centre, tol=1e-3, dtype="float32", n_threads=2))
    exact = exact_gram_stack(kernels, rough)
    assert isinstance(exact, DenseGrams if are_given else StreamedGrams)
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


@pytest.mark.parametrize("n", [1, 10, 1000, 2000, 20_000, 1_000_000])
def test_blocks_whose_pairs_are_held_grow_slower_than_the_samples(n):
    assert 1 <= block_samples(n) <= n
    assert block_samples(n) <= 36.0 * n**0.5 or n < 16
    assert block_samples(n) <= block_samples(2 * n) <= 2 * block_samples(n)


def test_streaming_takes_little_more_than_the_table_however_many_samples():
    for n in (20_000, 1_000_000):
        table = 8 * n * 20
        assert streamed_bytes(n, 20, 20) <= 200e6 + 40 * table
        assert streamed_bytes(n, 20, 20) - streamed_bytes(n, 20, 0) == table


def test_a_learner_with_a_factor_and_problems_side_by_side_need_more():
    n, one = 3000, unpacked_bytes(3000, 3, 4)
    assert unpacked_bytes(n, 3, 4, SolverSize(matrices=1)) == one + 8 * n**2
    assert unpacked_bytes(n, 3, 4, SolverSize(side_by_side=2)) == 2 * one
    assert streamed_bytes(n, 3, 4, 8) > streamed_bytes(n, 3, 4)
    kernels, factor = fitted(n), replace(ROUGH, solver=SolverSize(matrices=1), streams_from=None)
    limit = one + 8 * 4 * n
    assert build_gram_stack(kernels, replace(ROUGH, memory_limit=limit, streams_from=None)).n_samples == n
    with pytest.raises(MemoryError, match="even when only their combination is held"):
        build_gram_stack(kernels, replace(factor, memory_limit=limit))


@pytest.mark.parametrize(("n_jobs", "classes", "side_by_side"), [(1, 2, 1), (2, 2, 1), (2, 3, 2), (8, 3, 3)])
def test_a_model_says_what_its_learner_holds_and_how_many_run_at_once(
    monkeypatch, n_jobs, classes, side_by_side
):
    policies = []

    def remembered(kernels, policy):
        policies.append(policy)
        return build_gram_stack(kernels, policy)

    monkeypatch.setattr("kernelweave.estimators.model.build_gram_stack", remembered)
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.arange(40) % classes
    MKLClassifier(learner=Fisher(), n_jobs=n_jobs, tol=1e-2, multiclass="per_class").fit(X, y)
    assert policies[0].solver == SolverSize(matrices=1, side_by_side=side_by_side)
