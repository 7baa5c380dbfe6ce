"""Kernels of sets, bags, histograms and booleans against their definitions, by enumeration."""

from itertools import combinations
from math import comb

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from kernelweave.kernels import (
    Intersection,
    Jaccard,
    Linear,
    MinMax,
    MonotoneConjunctive,
    MonotoneDisjunctive,
)

RNG = np.random.default_rng(5)
BAGS = [RNG.choice(list("abcdefgh"), RNG.integers(0, 9)).tolist() for _ in range(25)]
BAGS[3], BAGS[8] = [], []
NUMBERS = RNG.random((25, 6)) * (RNG.random((25, 6)) < 0.6)
NUMBERS[4], NUMBERS[9] = 0.0, 0.0
BITS = (RNG.random((20, 7)) < 0.4).astype(float)
BITS[2] = 0.0


def shared(x, z):
    return sum(min(x.count(token), z.count(token)) for token in set(x))


def table(of, samples):
    return np.array([[of(x, z) for z in samples] for x in samples])


def jaccard(x, z):
    return len(set(x) & set(z)) / len(set(x) | set(z)) if x or z else 1.0


def min_max(x, z):
    return shared(x, z) / (len(x) + len(z) - shared(x, z)) if x or z else 1.0


def test_jaccard_is_the_share_of_common_elements():
    np.testing.assert_allclose(Jaccard()(BAGS), table(jaccard, BAGS), rtol=1e-14)
    np.testing.assert_allclose(Jaccard()([set(bag) for bag in BAGS]), table(jaccard, BAGS), rtol=1e-14)
    np.testing.assert_allclose(Jaccard()(BAGS[:4], BAGS[3:]), table(jaccard, BAGS)[:4, 3:], rtol=1e-14)


def test_min_max_and_intersection_count_repeats():
    np.testing.assert_allclose(MinMax()(BAGS), table(min_max, BAGS), rtol=1e-14)
    np.testing.assert_array_equal(Intersection()(BAGS), table(shared, BAGS))
    assert Jaccard()([["a", "a"], ["a"]]).min() == 1.0
    assert MinMax()([["a", "a"], ["a"]]).min() == 0.5


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix, lambda X: X.tolist()])
def test_numbers_are_compared_column_by_column(kind):
    low = table(lambda x, z: np.minimum(x, z).sum(), NUMBERS)
    high = table(lambda x, z: np.maximum(x, z).sum(), NUMBERS)
    both = table(lambda x, z: ((x > 0) & (z > 0)).sum(), NUMBERS)
    any_ = table(lambda x, z: ((x > 0) | (z > 0)).sum(), NUMBERS)
    np.testing.assert_allclose(Intersection()(kind(NUMBERS)), low, rtol=1e-13)
    np.testing.assert_allclose(
        MinMax()(kind(NUMBERS)), np.where(high > 0, low / np.where(high > 0, high, 1), 1.0), rtol=1e-12
    )
    np.testing.assert_allclose(Jaccard()(kind(NUMBERS)), np.where(any_ > 0, both / np.maximum(any_, 1), 1.0))


@pytest.mark.parametrize("kernel", [Jaccard, MinMax, Intersection])
def test_text_is_cut_at_the_separator(kernel):
    texts = [" ; ".join(bag) for bag in BAGS]
    np.testing.assert_array_equal(kernel(separator=";")(texts), kernel()(BAGS))
    np.testing.assert_array_equal(kernel()(pl.Series(BAGS)), kernel()(BAGS))
    np.testing.assert_array_equal(kernel()([np.array(bag) for bag in BAGS]), kernel()(BAGS))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda: Jaccard()(["a,b", "c"]),
            r"reads lists, tuples, sets \(give separator= for text\), received str",
        ),
        (lambda: Jaccard(separator="")(BAGS), "separator=''; it has to be text such as ','"),
        (lambda: Jaccard(separator=3)(BAGS), "separator=3"),
        (lambda: MinMax()([[{"a"}], ["a", "b"]]), "reads elements such as words and numbers: unhashable"),
        (lambda: MinMax()([[-1.0, 2.0]]), "needs numbers >= 0, received -1; use counts"),
        (lambda: Intersection()(sparse.csr_array([[-2.0, 0.0]])), "needs numbers >= 0, received -2"),
        (lambda: MonotoneConjunctive(0)(BITS), "arity=0; it has to be a whole number >= 1"),
        (lambda: MonotoneDisjunctive(1.5)(BITS), "arity=1.5"),
        (lambda: MonotoneDisjunctive()(NUMBERS), "reads columns of 0 and 1, received 0"),
        (lambda: MonotoneConjunctive()(sparse.csr_array([[2.0, 0.0]])), "received 2"),
    ],
)
def test_what_cannot_be_read_is_named(use, message):
    with pytest.raises((TypeError, ValueError), match=message):
        use()


@pytest.mark.parametrize("arity", [1, 2, 3, 6, 7, 8])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_boolean_kernels_count_what_both_samples_satisfy(arity, kind):
    choices = list(combinations(range(7), arity))
    for kernel, of in ((MonotoneConjunctive, all), (MonotoneDisjunctive, any)):
        satisfied = np.array([[of(x[list(choice)]) for choice in choices] for x in BITS], dtype=float)
        K = satisfied @ satisfied.T if choices else np.zeros((20, 20))
        np.testing.assert_allclose(kernel(arity, raw=True)(kind(BITS)), K, rtol=1e-13, atol=1e-12)
        size = np.sqrt(np.outer(np.diagonal(K), np.diagonal(K)))
        expected = np.divide(K, size, out=np.zeros_like(K), where=size > 0.0)
        np.testing.assert_allclose(kernel(arity)(kind(BITS)), expected, rtol=1e-13, atol=1e-14)


def test_arity_one_is_the_linear_kernel():
    for kernel in (MonotoneConjunctive, MonotoneDisjunctive):
        np.testing.assert_allclose(kernel(1, raw=True)(BITS), Linear()(BITS), atol=1e-13)


def test_large_binomials_keep_their_digits():
    X = (RNG.random((5, 3000)) < 0.35).astype(float)
    X[1, :] = X[0, :]
    X[1, 0] = 1.0 - X[0, 0]
    n, a = X.astype(int).sum(axis=1), 200
    common = (X @ X.T).astype(int)
    conjunctive, disjunctive = MonotoneConjunctive(a)(X), MonotoneDisjunctive(a)(X)
    for i in range(5):
        for j in range(5):
            size = comb(n[i], a) * comb(n[j], a)
            exact = (comb(int(common[i, j]), a) ** 2 * 10**40 // size / 10**40) ** 0.5
            assert conjunctive[i, j] == pytest.approx(exact, rel=1e-10, abs=1e-19)
            sides = [comb(3000, a) - comb(3000 - int(m), a) for m in (n[i], n[j], n[i] + n[j] - common[i, j])]
            exact = ((sides[0] + sides[1] - sides[2]) ** 2 * 10**40 // (sides[0] * sides[1]) / 10**40) ** 0.5
            assert disjunctive[i, j] == pytest.approx(exact, rel=1e-10)
    assert np.isinf(MonotoneConjunctive(450, raw=True)(X).max())  # a bank says that it is not finite


def test_a_disjunction_of_few_ones_among_many_columns_keeps_its_digits():
    X = np.zeros((3, 5000))
    X[0, 0] = X[1, 1] = X[2, :2] = 1.0
    expected = comb(4998, 2)  # disjunctions of 4 columns that hold both
    K = MonotoneDisjunctive(4, raw=True)(X)
    assert K[0, 1] == pytest.approx(expected, rel=1e-8)
