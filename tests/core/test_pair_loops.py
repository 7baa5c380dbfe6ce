"""The compiled passes over pairs of rows against their naive twins: values, sums, products and energies."""

from functools import partial

import numpy as np
import pytest
from tests.reference import pairs

from kernelweave import _core

DTYPES = [np.float32, np.float64]
DISTANCE, INNER = 0, 1
# Around one tile of 8 rows and one panel of 8 or 16, and past the 512 rows that are added up at a time.
SIZES = [1, 7, 8, 9, 15, 16, 17, 513]
PAIRED = [*zip(SIZES, SIZES[::-1], strict=True), (17, 1030)]

SHAPE = np.array([0, 1, 2, 3, 4, 4, 4])
DEGREE = np.array([1, 1, 1, 1, 1, 2, 5])
GAMMA = np.array([0.3, 2.0, 0.7, 0.05, 1.0, 0.2, 0.1])
OFFSET = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0])
WEIGHTS = np.array([0.5, 1.0, 2.0, 0.25, 0.1, 0.01, 0.002])


def kernels(argument, which=slice(None)):
    return argument, SHAPE[which], DEGREE[which], GAMMA[which], OFFSET[which]


def rows(rng, n, argument, dtype, width=5):
    """Rows whose distances, and inner products, are not negative and not all small."""
    X = rng.normal(size=(n, width))
    return np.ascontiguousarray(np.abs(X) if argument == INNER else X, dtype=dtype)


def coefficients(rng, shape, dtype):
    """Return coefficients in double precision that lose nothing when rows of this type meet them."""
    return rng.normal(size=shape).astype(dtype).astype(float)


def rounding(dtype):
    """Of a few dozen operations, as a share of the numbers that are added."""
    return 24 * np.finfo(dtype).eps


def near(found, expected, dtype, per_kernel=True):
    """Compare up to rounding of the largest entry, kernel by kernel."""
    digits = rounding(dtype)
    for mine, theirs in zip(found, expected, strict=True) if per_kernel else [(found, expected)]:
        size = float(np.abs(theirs).max(initial=0.0))
        np.testing.assert_allclose(mine, theirs.astype(float), rtol=digits, atol=digits * size)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("argument", [DISTANCE, INNER])
@pytest.mark.parametrize(("n", "m"), PAIRED)
def test_values_are_those_of_the_formulas(rng, n, m, argument, dtype):
    X, Z = rows(rng, n, argument, dtype), rows(rng, m, argument, dtype)
    out = np.full((len(SHAPE), n, m), np.nan, dtype=dtype)
    _core.kernel_values(X, Z, *kernels(argument), out)
    near(out, pairs.kernel_values(X, Z, *kernels(argument)), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("argument", [DISTANCE, INNER])
@pytest.mark.parametrize(("n", "m"), PAIRED)
def test_weighted_values_are_added_to_what_is_there(rng, n, m, argument, dtype):
    X, Z = rows(rng, n, argument, dtype), rows(rng, m, argument, dtype)
    before = rng.normal(size=(n, m)).astype(dtype)
    out = before.copy()
    _core.add_weighted_values(X, Z, *kernels(argument), WEIGHTS, out)
    expected = pairs.weighted_values(X, Z, *kernels(argument), weights=WEIGHTS)
    near(out, before + expected, dtype, per_kernel=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("argument", [DISTANCE, INNER])
@pytest.mark.parametrize("n", SIZES)
def test_the_lower_triangle_of_a_weighted_gram_is_that_of_the_values(rng, n, argument, dtype):
    X, before = rows(rng, n, argument, dtype), rng.normal(size=(n, n)).astype(dtype)
    triangle, square = before.copy(), before.copy()
    _core.add_weighted_gram(X, *kernels(argument), WEIGHTS, triangle)
    _core.add_weighted_values(X, X, *kernels(argument), WEIGHTS, square)
    np.testing.assert_array_equal(np.tril(triangle), np.tril(square))
    expected = before + pairs.weighted_values(X, X, *kernels(argument), weights=WEIGHTS)
    near(np.tril(triangle), np.tril(expected), dtype, per_kernel=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("argument", [DISTANCE, INNER])
@pytest.mark.parametrize(("n", "m"), PAIRED)
def test_products_are_added_to_what_is_there(rng, n, m, argument, dtype):
    X, Z = rows(rng, n, argument, dtype), rows(rng, m, argument, dtype)
    columns = 1 + n % 3
    coef = coefficients(rng, (columns, m), dtype)
    out = np.ones((len(SHAPE), columns, n))
    _core.add_products(X, Z, coef, *kernels(argument), out)
    expected = 1.0 + pairs.products(X, Z, coef, *kernels(argument))
    size = 1.0 + pairs.sizes(X, Z, coef, *kernels(argument)).max(axis=2, keepdims=True)
    assert (np.abs(out - expected) <= rounding(dtype) * size).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("argument", [DISTANCE, INNER])
@pytest.mark.parametrize(("n", "m"), PAIRED)
def test_weighted_products_are_the_weighted_sum_of_the_products(rng, n, m, argument, dtype):
    X, Z = rows(rng, n, argument, dtype), rows(rng, m, argument, dtype)
    columns = 1 + n % 3
    coef = coefficients(rng, (columns, m), dtype)
    out = np.ones((columns, n))
    _core.add_weighted_products(X, Z, coef, *kernels(argument), WEIGHTS, out)
    expected = 1.0 + pairs.weighted_products(X, Z, coef, *kernels(argument), weights=WEIGHTS)
    size = 1.0 + np.tensordot(WEIGHTS, pairs.sizes(X, Z, coef, *kernels(argument)), 1)
    assert (np.abs(out - expected) <= rounding(dtype) * size).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("argument", [DISTANCE, INNER])
@pytest.mark.parametrize("n", SIZES)
def test_energies_count_every_pair_once(rng, n, argument, dtype):
    X, coef = rows(rng, n, argument, dtype), coefficients(rng, (1 + n % 3, n), dtype)
    out = np.full(len(SHAPE), np.nan)
    _core.pair_energies(X, coef, *kernels(argument), out)
    size = 0.5 * np.sum(pairs.sizes(X, X, coef, *kernels(argument)) * np.abs(coef), axis=(1, 2))
    expected = pairs.energies(X, coef, *kernels(argument))
    assert (np.abs(out - expected) <= rounding(dtype) * size).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("argument", [DISTANCE, INNER])
@pytest.mark.parametrize(("n", "m"), [(1, 9), (17, 33), (100, 3)])
def test_values_do_not_depend_on_which_of_two_rows_comes_first(rng, n, m, argument, dtype):
    X, Z = rows(rng, n, argument, dtype), rows(rng, m, argument, dtype)
    there, back = np.empty((7, n, m), dtype=dtype), np.empty((7, m, n), dtype=dtype)
    _core.kernel_values(X, Z, *kernels(argument), there)
    _core.kernel_values(Z, X, *kernels(argument), back)
    np.testing.assert_array_equal(there, back.transpose(0, 2, 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_is_exactly_one_with_itself_wherever_it_stands(rng, dtype):
    X = 1e3 * rows(rng, 40, DISTANCE, dtype)
    values = np.empty((7, 40, 40), dtype=dtype)
    _core.kernel_values(X, X, *kernels(DISTANCE), values)
    for K in values[:4]:
        np.testing.assert_array_equal(np.diagonal(K), 1.0)


def passes(rng, n, m, argument, dtype):
    """All six passes as functions of the number of threads, with arrays to write to."""
    X, Z = rows(rng, n, argument, dtype), rows(rng, m, argument, dtype)
    K = kernels(argument)
    coef, own = coefficients(rng, (2, m), dtype), coefficients(rng, (2, n), dtype)
    return {
        "values": (partial(_core.kernel_values, X, Z, *K), np.zeros((7, n, m), dtype)),
        "weighted values": (
            partial(_core.add_weighted_values, X, Z, *K, WEIGHTS),
            np.zeros((n, m), dtype),
        ),
        "weighted gram": (partial(_core.add_weighted_gram, X, *K, WEIGHTS), np.zeros((n, n), dtype)),
        "products": (partial(_core.add_products, X, Z, coef, *K), np.zeros((7, 2, n))),
        "weighted products": (
            partial(_core.add_weighted_products, X, Z, coef, *K, WEIGHTS),
            np.zeros((2, n)),
        ),
        "energies": (partial(_core.pair_energies, X, own, *K), np.zeros(7)),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("argument", [DISTANCE, INNER])
@pytest.mark.parametrize(("n", "m"), [(7, 600), (131, 77), (600, 600)])
def test_threads_do_not_change_a_digit(rng, n, m, argument, dtype):
    for name, (run, out) in passes(rng, n, m, argument, dtype).items():
        answers = []
        for n_threads in (1, 2, 3):
            out[:] = 0.0
            run(out, n_threads)
            answers.append(out.tobytes())
        assert out.any(), name
        assert answers[0] == answers[1] == answers[2], name


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gamma", [1e-7, 1e-12])
def test_wide_kernels_keep_their_digits_where_coefficients_sum_to_zero(rng, gamma, dtype):
    """k - 1 is at or below the last digit of k: what is left of sums of k is all in k - 1."""
    X, Z = rows(rng, 40, DISTANCE, dtype), rows(rng, 600, DISTANCE, dtype)
    wide = DISTANCE, SHAPE[:4], DEGREE[:4], np.array([gamma, gamma**2, gamma, gamma**2]), OFFSET[:4]
    coef = rng.integers(-8, 9, size=(2, 600)).astype(float)
    coef[:, 0] -= coef.sum(axis=1)  # whole numbers: they sum to zero in every digit
    digits = 1e-5 if dtype == np.float32 else 1e-13
    found = np.zeros((4, 2, 40))
    _core.add_products(X, Z, coef, *wide, found)
    for mine, theirs in zip(found, pairs.products(X, Z, coef, *wide), strict=True):
        np.testing.assert_allclose(mine, theirs.astype(float), atol=digits * float(np.abs(theirs).max()))
    energies = np.empty(4)
    _core.pair_energies(Z, coef, *wide, energies)
    np.testing.assert_allclose(energies, pairs.energies(Z, coef, *wide).astype(float), rtol=digits)
    assert (energies > 0.0).all()
    for a in range(4):  # one by one: their sizes differ
        one = (DISTANCE, *(part[[a]] for part in wide[1:]))
        sums = np.zeros((2, 40))
        _core.add_weighted_products(X, Z, coef, *one, np.array([3.0]), sums)
        expected = pairs.weighted_products(X, Z, coef, *one, weights=np.array([3.0])).astype(float)
        np.testing.assert_allclose(sums, expected, atol=digits * np.abs(expected).max())


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_ones_of_radial_functions_count_as_often_as_coefficients_say_before_they_are_rounded(rng, dtype):
    X, coef, weights = rows(rng, 9, DISTANCE, dtype), rng.normal(size=(2, 9)), np.array([1.0, 2.0, 3.0, 4.0])
    flat = DISTANCE, SHAPE[:4], DEGREE[:4], np.full(4, 1e-30), OFFSET[:4]  # one everywhere
    sums, found, total, energies = coef.sum(axis=1), np.zeros((4, 2, 9)), np.zeros((2, 9)), np.empty(4)
    _core.add_products(X, X, coef, *flat, found)
    _core.add_weighted_products(X, X, coef, *flat, weights, total)
    _core.pair_energies(X, coef, *flat, energies)
    np.testing.assert_allclose(found, np.broadcast_to(sums[:, None], (4, 2, 9)), rtol=1e-12)
    np.testing.assert_allclose(total, np.broadcast_to(10.0 * sums[:, None], (2, 9)), rtol=1e-12)
    np.testing.assert_allclose(energies, 0.5 * float(sums @ sums), rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_exponential_is_right_to_the_last_digits_from_nothing_to_far_out(dtype):
    lowest = 87.0 if dtype == np.float32 else 708.0
    u = np.concatenate([[0.0], np.logspace(-30, 0, 200), np.linspace(1.0, lowest, 500)])
    Z = np.sqrt(u).astype(dtype)[:, None]
    one = DISTANCE, np.array([0]), np.array([1]), np.array([1.0]), np.array([0.0])
    value, rise = np.empty((1, 1, u.size), dtype), np.zeros((1, u.size, 1))
    zero = np.zeros((1, 1), dtype)
    _core.kernel_values(zero, Z, *one, value)
    # Against the first row, which is zero too: there k is 1, and only k - 1 is left of the difference.
    differences = np.eye(u.size)
    differences[:, 0] -= 1.0
    _core.add_products(zero, Z, differences, *one, rise)
    exact = pairs.rises(zero, Z, *one)[0]
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(rise[0, :, 0], exact[0].astype(float), rtol=3 * eps)
    np.testing.assert_allclose(value[0], (1.0 + exact).astype(float), atol=eps)
    far = np.array([[lowest * 1.02], [1e4], [np.finfo(dtype).max / 4]]).astype(dtype) ** dtype(0.5)
    beyond = np.empty((1, 1, 3), dtype)
    _core.kernel_values(zero, far, *one, beyond)
    assert (np.abs(beyond) <= eps).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "m", "width"), [(0, 5, 2), (5, 0, 2), (0, 0, 0), (5, 6, 0)])
def test_nothing_is_added_where_there_are_no_rows_and_no_columns_make_no_distance(rng, n, m, width, dtype):
    X, Z = np.ones((n, width), dtype), np.ones((m, width), dtype)
    coef, own = coefficients(rng, (2, m), dtype), coefficients(rng, (2, n), dtype)
    for argument in (DISTANCE, INNER):
        K = kernels(argument)
        values, weighted, gram = np.empty((7, n, m), dtype), np.ones((n, m), dtype), np.ones((n, n), dtype)
        products, sums, energies = np.ones((7, 2, n)), np.ones((2, n)), np.ones(7)
        _core.kernel_values(X, Z, *K, values)
        _core.add_weighted_values(X, Z, *K, WEIGHTS, weighted)
        _core.add_weighted_gram(X, *K, WEIGHTS, gram)
        _core.add_products(X, Z, coef, *K, products)
        _core.add_weighted_products(X, Z, coef, *K, WEIGHTS, sums)
        _core.pair_energies(X, own, *K, energies)
        near(values, pairs.kernel_values(X, Z, *K), dtype)
        near(weighted, 1.0 + pairs.weighted_values(X, Z, *K, weights=WEIGHTS), dtype, per_kernel=False)
        near(
            np.tril(gram),
            np.tril(1.0 + pairs.weighted_values(X, X, *K, weights=WEIGHTS)),
            dtype,
            per_kernel=False,
        )
        near(products, 1.0 + pairs.products(X, Z, coef, *K), dtype)
        near(sums, 1.0 + pairs.weighted_products(X, Z, coef, *K, weights=WEIGHTS), dtype, per_kernel=False)
        near(energies, pairs.energies(X, own, *K), dtype, per_kernel=False)


def test_no_kernels_and_no_coefficients_leave_everything_as_it_is(rng):
    X, none = rows(rng, 9, DISTANCE, np.float64), kernels(DISTANCE, slice(0, 0))
    weighted, gram, sums = np.ones((9, 9)), np.ones((9, 9)), np.ones((1, 9))
    _core.kernel_values(X, X, *none, np.empty((0, 9, 9)))
    _core.add_weighted_values(X, X, *none, WEIGHTS[:0], weighted)
    _core.add_weighted_gram(X, *none, WEIGHTS[:0], gram)
    _core.add_products(X, X, np.ones((1, 9)), *none, np.empty((0, 1, 9)))
    _core.add_weighted_products(X, X, np.ones((1, 9)), *none, WEIGHTS[:0], sums)
    _core.pair_energies(X, np.ones((1, 9)), *none, np.empty(0))
    for out in (weighted, gram, sums):
        np.testing.assert_array_equal(out, 1.0)
    energies = np.ones(7)
    _core.pair_energies(X, np.ones((0, 9)), *kernels(DISTANCE), energies)
    np.testing.assert_array_equal(energies, 0.0)
    _core.add_products(X, X, np.ones((0, 9)), *kernels(DISTANCE), np.empty((7, 0, 9)))


TWO, THREE, WIDE, ONE = np.ones((2, 4)), np.ones((3, 4)), np.ones((3, 5)), np.ones((1, 3))
SINGLE, PAIR = np.ones((3, 4), np.float32), np.ones((1, 2))
NUMBERS = dict(zip(("argument", "shape", "degree", "gamma", "offset"), kernels(DISTANCE), strict=True))
# Arguments that fit: what is refused differs in one of them.
FITS = {
    "kernel_values": {"left": TWO, "right": THREE, "out": np.empty((7, 2, 3))},
    "add_weighted_values": {"left": TWO, "right": THREE, "weights": WEIGHTS, "out": np.empty((2, 3))},
    "add_weighted_gram": {"rows": TWO, "weights": WEIGHTS, "out": np.empty((2, 2))},
    "add_products": {"left": TWO, "right": THREE, "coef": ONE, "out": np.empty((7, 1, 2))},
    "add_weighted_products": {
        **{"left": TWO, "right": THREE, "coef": ONE},
        **{"weights": WEIGHTS, "out": np.empty((1, 2))},
    },
    "pair_energies": {"rows": TWO, "coef": PAIR, "out": np.empty(7)},
}
REFUSED = [
    ("kernel_values", {"right": WIDE}, "same columns"),
    ("kernel_values", {"out": np.empty((6, 2, 3))}, "out must have shape"),
    ("kernel_values", {"out": np.empty((7, 3, 2))}, "out must have shape"),
    ("kernel_values", {"argument": 2}, "argument is 0"),
    ("kernel_values", {"argument": -1}, "argument is 0"),
    ("kernel_values", {"shape": SHAPE + 1}, "no such shape"),
    ("kernel_values", {"shape": SHAPE - 1}, "no such shape"),
    ("kernel_values", {"offset": OFFSET[:3]}, "one entry per kernel"),
    ("kernel_values", {"gamma": GAMMA[:3]}, "one entry per kernel"),
    ("kernel_values", {"degree": DEGREE[:3]}, "one entry per kernel"),
    ("add_weighted_values", {"right": WIDE}, "same columns"),
    ("add_weighted_values", {"weights": WEIGHTS[:6]}, "one weight"),
    ("add_weighted_values", {"out": np.empty((3, 2))}, "out must have shape"),
    ("add_weighted_gram", {"weights": WEIGHTS[:6]}, "one weight"),
    ("add_weighted_gram", {"out": np.empty((2, 3))}, "one row and one column"),
    ("add_weighted_gram", {"out": np.empty((3, 2))}, "one row and one column"),
    ("add_products", {"right": WIDE}, "same columns"),
    ("add_products", {"coef": PAIR}, "one column per row"),
    ("add_products", {"out": np.empty((7, 1, 3))}, "out must have shape"),
    ("add_products", {"out": np.empty((7, 2, 2))}, "out must have shape"),
    ("add_products", {"out": np.empty((1, 1, 2))}, "out must have shape"),
    ("add_weighted_products", {"right": WIDE}, "same columns"),
    ("add_weighted_products", {"coef": PAIR}, "one column per row"),
    ("add_weighted_products", {"weights": WEIGHTS[1:]}, "one weight"),
    ("add_weighted_products", {"out": np.empty((2, 2))}, "out must have shape"),
    ("pair_energies", {"coef": ONE}, "one column per row"),
    ("pair_energies", {"out": np.empty(6)}, "one entry per kernel"),
]


def call(name, **changed):
    getattr(_core, name)(**(FITS[name] | NUMBERS | changed))


@pytest.mark.parametrize(("name", "changed", "message"), REFUSED)
def test_wrong_shapes_are_refused(name, changed, message):
    call(name)
    with pytest.raises(ValueError, match=message):
        call(name, **changed)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("kernel_values", {"right": SINGLE}),
        ("kernel_values", {"out": np.empty((7, 2, 3), np.float32)}),
        ("kernel_values", {"left": TWO.astype(int), "right": THREE.astype(int)}),
        ("kernel_values", {"left": np.ones((4, 2)).T}),
        ("kernel_values", {"shape": SHAPE.astype(np.int32)}),
        ("kernel_values", {"out": np.empty((7, 3, 2)).transpose(0, 2, 1)}),
        ("add_weighted_values", {"out": np.empty((2, 3), np.float32)}),
        ("add_weighted_values", {"weights": WEIGHTS.astype("f4")}),
        ("add_weighted_gram", {"rows": SINGLE, "out": np.empty((3, 3))}),
        ("add_products", {"coef": ONE.astype("f4")}),
        ("add_products", {"left": SINGLE, "right": SINGLE, "out": np.empty((7, 1, 3), "f4")}),
        ("add_weighted_products", {"right": SINGLE}),
        ("pair_energies", {"rows": SINGLE, "coef": ONE.astype("f4")}),
        ("pair_energies", {"out": np.empty(7, np.float32)}),
    ],
)
def test_wrong_types_and_layouts_are_refused(name, changed):
    with pytest.raises(TypeError):
        call(name, **changed)
