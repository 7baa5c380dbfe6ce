"""However the matrices are held, the verbs mean the same."""

import numpy as np
import pytest

from kernelweave.gram import DenseGrams, LazyGrams, MatrixSource, PackedGrams, choose, memory, source, store
from kernelweave.gram.choose import packing, wish
from kernelweave.gram.memory import budget, free_bytes, human, lazy_bytes, packed_bytes
from kernelweave.gram.source import renumbered
from kernelweave.gram.sums import summed


@pytest.fixture
def matrices(rng):
    factors = rng.normal(size=(5, 30, 12))
    return tuple(A @ A.T for A in factors)


def sources(matrices):
    return [MatrixSource(matrices)]


def packed(matrices, dtype, centre, n_threads=2):
    return PackedGrams.pack(sources(matrices), len(matrices), len(matrices[0]), dtype, centre, n_threads)


def lazy(matrices, **options):
    return LazyGrams(sources(matrices), len(matrices), len(matrices[0]), n_threads=2, **options)


STACKS = {
    "dense": lambda Ks: DenseGrams(Ks),
    "dense centred": lambda Ks: DenseGrams(Ks, centre=True),
    "lazy, combined float32": lambda Ks: lazy(Ks, dtype="float32"),
    "lazy centred, combined float32": lambda Ks: lazy(Ks, centre=True, dtype="float32"),
    "packed float64": lambda Ks: packed(Ks, "float64", False),
    "packed float64 centred": lambda Ks: packed(Ks, "float64", True),
    "packed float32": lambda Ks: packed(Ks, "float32", False),
    "packed float32 centred": lambda Ks: packed(Ks, "float32", True),
}


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("columns", [(), (3,)])
def test_the_verbs_are_what_the_matrices_say(rng, matrices, name, columns):
    stack = STACKS[name](matrices)
    V = rng.normal(size=(30, *columns))
    V -= V.mean(axis=0)  # what makes centring harmless
    eta = np.array([0.3, 0.0, 2.0, 0.1, 1.0])
    tolerance = dict(rtol=1e-6, atol=1e-4) if "32" in name else dict(rtol=1e-10, atol=1e-9)
    K = sum(w * k for w, k in zip(eta, matrices, strict=True))
    offset = stack.offset(eta, V)
    np.testing.assert_allclose(stack.combine(eta) @ V + offset, K @ V, **tolerance)
    np.testing.assert_allclose(np.tensordot(eta, stack.images(V), axes=1) + offset, K @ V, **tolerance)
    energies = [0.5 * np.vdot(V, k @ V) for k in matrices]
    np.testing.assert_allclose(stack.energies(V), energies, **tolerance)
    assert stack.images(V).shape == (5, *V.shape)
    rounded = name in ("packed float32", "packed float32 centred")
    near = stack.image_near(summed(stack, eta), V)
    assert (near is not None) == rounded
    for image, reach in (stack.image_within(eta, V, summed(stack, eta)), *([near] if near else [])):
        assert image.shape == reach.shape == V.shape
        image = image + offset
        np.testing.assert_allclose(image, K @ V, **tolerance)
        assert (np.abs(image - K @ V) <= reach + 1e-9).all()
        assert reach.any() == ("32" in name)
        assert reach.max() <= 1e-5 * np.abs(image).max()
    off = np.abs(stack.energies(V) - energies)
    assert (off <= stack.energy_errors(V) + 1e-9).all()
    assert stack.energy_errors(V).any() == rounded
    assert (stack.n_kernels, stack.n_samples) == (5, 30)


def test_without_their_sum_the_image_is_read_from_the_matrices(rng, matrices):
    stack = lazy(matrices, centre=True, dtype="float32")
    v = rng.normal(size=30)
    v -= v.mean()
    eta = np.array([0.3, 0.0, 2.0, 0.1, 1.0])
    for total in (None, summed(stack, eta)):
        image, reach = stack.image_within(eta, v, total)
        exact = np.tensordot(eta, matrices, axes=1) @ v - stack.offset(eta, v)
        assert reach.any() == (total is not None)
        assert (np.abs(image - exact) <= reach + 1e-9).all()


@pytest.mark.parametrize("centre", [False, True])
def test_the_first_even_combination_is_that_of_the_matrices_as_they_were(matrices, centre):
    how = {"n_kernels": 5, "n_samples": 30, "dtype": "float32", "centre": centre, "n_threads": 2}
    stack = PackedGrams.pack(sources(matrices), even=True, **how)
    eta, uneven = np.full(5, 0.3), np.array([0.3, 0.3, 0.3, 0.3, 0.2])
    shift = (eta @ stack.shifts)[:, None] + eta @ stack.shifts
    exact = np.tensordot(eta, matrices, axes=1) - shift
    assert not stack.sample(np.arange(9)).even  # nor are they even of another size
    assert not stack.subset(np.arange(3)).even
    np.testing.assert_allclose(stack.combine(uneven), packed(matrices, "float32", centre).combine(uneven))
    first, second = stack.combine(eta), stack.combine(eta)
    assert first.dtype == np.float32
    assert (np.abs(first - exact) <= 2.0**-24 * np.abs(exact) + 1e-12).all()
    np.testing.assert_allclose(second, exact, atol=1e-5 * np.abs(exact).max())
    assert not stack.even


@pytest.mark.parametrize("name", STACKS)
def test_a_sample_is_a_stack_of_its_own(rng, matrices, name):
    rows = np.array([1, 4, 5, 17, 28])
    part = STACKS[name](matrices).sample(rows)
    few = [K[np.ix_(rows, rows)] for K in matrices]
    v = rng.normal(size=5)
    v -= v.mean()
    eta = rng.random(5)
    tolerance = dict(rtol=1e-6, atol=1e-4) if "32" in name else dict(rtol=1e-10, atol=1e-9)
    K = np.tensordot(eta, few, axes=1)
    np.testing.assert_allclose(part.combine(eta) @ v + part.offset(eta, v), K @ v, **tolerance)
    energies = np.array([0.5 * v @ k @ v for k in few])
    np.testing.assert_allclose(part.energies(v), energies, **tolerance)
    assert (np.abs(part.energies(v) - energies) <= part.energy_errors(v) + 1e-9).all()
    assert (part.n_kernels, part.n_samples) == (5, 5)
    assert (part.sizes >= [k.diagonal().max() for k in few]).all()


def test_a_start_is_looked_for_among_few_samples_if_there_are_many(monkeypatch):
    sizes = (999, 1000, 2400, 16_000)
    assert [memory.sample_size(n, 10, leads=True) for n in sizes] == [0, 480, 840, 1000]
    assert [memory.sample_size(n, 10, leads=False) for n in sizes] == [0, 300, 500, 1831]
    for leads in (True, False):
        assert [memory.sample_size(n, 100, leads) for n in (400, 500, 999)] == [0, 125, 249]
        assert memory.sample_size(999, 100, leads, early=False) == memory.sample_size(500, 10, leads) == 0
    held = packed_bytes(16_000, 10, 4) - lazy_bytes(16_000, 10, 4)
    with_sample = lazy_bytes(16_000, 10, 4)
    monkeypatch.setattr(memory, "WORTH", 20_000)
    monkeypatch.setattr(memory, "EARLY", 20_000)
    assert packed_bytes(16_000, 10, 4) - lazy_bytes(16_000, 10, 4) == held
    assert with_sample - lazy_bytes(16_000, 10, 4) == 10 * (1831 * 1832 // 2) * 4


def test_a_sample_takes_no_more_than_it_may():
    for n_kernels in (50, 200, 350):
        size = memory.sample_size(20_000, n_kernels, leads=False)
        assert 300 <= size < 2500
        assert 0.98 * memory.SAMPLE <= n_kernels * size**2 / 2 * 8 <= memory.SAMPLE
    assert memory.sample_size(20_000, 500, leads=False) == memory.sample_size(999, 600, leads=False) == 0
    assert memory.sample_size(999, 500, leads=False) == 249


def test_only_float32_rounds_beyond_double(matrices):
    largest = np.array([np.abs(K).max() for K in matrices])
    for name, make in STACKS.items():
        stack = make(matrices)
        assert stack.is_rounded == ("32" in name)
        assert (stack.errors > 0).all()
        assert (stack.errors <= 2.0**-48 * largest).all()
        assert (stack.sizes >= 0.3 * largest).all()


@pytest.mark.parametrize("step", [1, 4, 30])
def test_a_stack_may_be_made_in_blocks_of_any_size(rng, matrices, monkeypatch, step):
    monkeypatch.setattr(source, "ENTRIES", 30 * step)
    v = rng.normal(size=30)
    v -= v.mean()
    eta = rng.random(5)
    blocks = renumbered([MatrixSource(matrices)])  # not in bulk
    assert len(list(blocks[0].blocks())) == -(-30 // step)
    for stack in (
        PackedGrams.pack(blocks, 5, 30, "float64", True, 2),
        LazyGrams(blocks, 5, 30, centre=True, n_threads=2),
    ):
        K = np.tensordot(eta, matrices, axes=1)
        np.testing.assert_allclose(stack.combine(eta) @ v + stack.offset(eta, v), K @ v, rtol=1e-9)
        np.testing.assert_allclose(stack.combine(eta), stack.combine(eta).T, rtol=0, atol=0)
        np.testing.assert_allclose(stack.energies(v), [0.5 * v @ k @ v for k in matrices], rtol=1e-9)


def test_a_working_set_is_paid_for_before_kernels_are_made(matrices, monkeypatch):
    monkeypatch.setattr(choose, "WORKING", 3)
    beside = {size: packed_bytes(30, 3, size) + lazy_bytes(30, 5, size) for size in (4, 8)}

    def working(limit, dtype="auto"):
        options = {"in_memory": False, "centre": True, "tol": 1e-3, "dtype": dtype, "lazy": True}
        return (
            store(lambda: sources(matrices), 30, 5, memory_limit=limit, **options).combine(np.ones(5)).dtype
        )

    assert working(beside[8]) == np.float64
    assert working(beside[4], "float32") == np.float32
    for limit, dtype in ((beside[8] - 1, "float64"), (beside[4] - 1, "float32")):
        with pytest.raises(MemoryError, match="5 kernels of 30 samples"):
            working(limit, dtype)


def test_centring_saves_the_energies_of_wide_gaussians_in_float32(rng):
    x = rng.normal(size=(200, 1))
    K = np.exp(-((x - x.T) ** 2) / (2 * 64.0**2))
    v = rng.normal(size=200)
    v -= v.mean()
    exact = 0.5 * v @ K @ v
    plain = packed([K], "float32", False).energies(v)[0]
    centred = packed([K], "float32", True).energies(v)[0]
    assert abs(centred - exact) < 1e-5 * exact
    assert abs(plain - exact) > 100 * abs(centred - exact)


def test_dense_matrices_are_not_copied(matrices):
    given = sources(matrices)
    stack = store(lambda: given, 30, 5, in_memory=True, centre=True, tol=1e-6)
    for m, block in stack.sources[0].block(slice(0, 30), slice(0, 30)):
        assert np.shares_memory(block, matrices[m])


@pytest.mark.parametrize(
    ("n", "m", "tol", "expected"),
    [(60, 8, 1e-3, "float64"), (2000, 50, 1e-3, "float32"), (2000, 50, 1e-6, "float64")],
)
def test_precision_follows_size_and_tolerance(n, m, tol, expected):
    assert packing(n, m, tol, "auto", 10**12) == expected


def test_the_users_dtype_wins():
    assert wish(60, 8, 1e-6, "float32") == "float32"
    assert wish(2000, 50, 1e-3, "float64") == "float64"


def test_an_unknown_dtype_is_named():
    with pytest.raises(ValueError, match="auto, float32, float64; got 'float16'"):
        wish(60, 8, 1e-6, "float16")


def test_float32_is_taken_when_float64_does_not_fit():
    need32, need64 = packed_bytes(900, 2, 4), packed_bytes(900, 2, 8)
    assert packing(900, 2, 1e-3, "auto", need64) == "float64"
    assert packing(900, 2, 1e-3, "auto", (need32 + need64) // 2) == "float32"


def test_too_little_memory_is_refused_before_it_is_taken():
    def never():
        raise AssertionError("a matrix was asked for")

    with pytest.raises(MemoryError, match=r"50 kernels of 20000 samples need .* GB.*but 1 GB may be used"):
        store(never, 20_000, 50, in_memory=False, centre=True, tol=1e-3, memory_limit=1e9)


def test_the_estimate_covers_what_is_really_taken(matrices):
    stack = packed(matrices, "float32", True)
    taken = stack.packed.nbytes + stack.shifts.nbytes + stack.errors.nbytes
    assert taken <= packed_bytes(30, 5, 4) - lazy_bytes(30, 5, 4) + stack.shifts.nbytes + stack.errors.nbytes


def test_without_a_limit_the_budget_is_part_of_what_is_free():
    assert 0 < budget(None) < free_bytes()
    assert budget(123.0) == 123


@pytest.mark.parametrize(
    ("n", "text"), [(12, "12 B"), (3_400, "3.4 KB"), (5e6, "5 MB"), (1.25e10, "12.5 GB")]
)
def test_bytes_are_written_as_people_read_them(n, text):
    assert human(int(n)) == text
