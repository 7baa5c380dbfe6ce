"""Kernels of strings against their definitions, by enumeration."""

from collections import defaultdict
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernelweave.kernels import Gaussian, Spectrum, Subsequence
from kernelweave.kernels.groups import grouped
from kernelweave.kernels.pairs import Pairs

RNG = np.random.default_rng(4)
WORDS = [
    "",
    "a",
    "ab",
    "banana",
    "bandana",
    "anna",
    "nabab",
    "zoo",
    "naïve 𝄞 clef",
    "ab\x00ab",
    *("".join(RNG.choice(list("abn"), RNG.integers(3, 10))) for _ in range(14)),
]


def shared_kmers(s, t, k):
    """Count pairs of places with the same k letters."""
    return sum(s[i : i + k] == t[j : j + k] for i in range(len(s) - k + 1) for j in range(len(t) - k + 1))


def subsequences(text, length, decay):
    """Return every string of letters in order with the sum of decay^stretch over the places it is at."""
    found = defaultdict(float)
    for places in combinations(range(len(text)), length):
        found[tuple(text[i] for i in places)] += decay ** (places[-1] - places[0] + 1)
    return found


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_the_spectrum_kernel_counts_pairs_of_equal_kmers(k):
    expected = [[shared_kmers(s, t, k) for t in WORDS] for s in WORDS]
    np.testing.assert_array_equal(Spectrum(k)(WORDS), expected)
    np.testing.assert_array_equal(Spectrum(k)(WORDS[:9], WORDS[5:]), np.array(expected)[:9, 5:])
    np.testing.assert_array_equal(Spectrum(k).diagonal(WORDS), np.diagonal(expected))


def test_a_range_of_lengths_is_the_sum_of_its_spectrum_kernels():
    expected = sum(Spectrum(k)(WORDS) for k in (2, 3, 4))
    np.testing.assert_array_equal(Spectrum((2, 4))(WORDS), expected)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
@pytest.mark.parametrize("decay", [0.1, 0.7, 1.0])
def test_the_subsequence_kernel_is_the_sum_over_all_places(length, decay):
    features = [subsequences(text, length, decay) for text in WORDS]
    expected = np.array([[sum(f[u] * g.get(u, 0.0) for u in f) for g in features] for f in features])
    np.testing.assert_allclose(Subsequence(length, decay)(WORDS), expected, rtol=1e-13)
    np.testing.assert_allclose(Subsequence(length, decay)(WORDS[:9], WORDS[5:]), expected[:9, 5:], rtol=1e-13)
    np.testing.assert_allclose(Subsequence(length, decay).diagonal(WORDS), np.diagonal(expected), rtol=1e-13)


def test_normalising_divides_by_the_lengths_and_leaves_short_strings_at_zero():
    K = Spectrum(3)(WORDS)
    lengths = np.sqrt(np.diagonal(K))
    expected = np.divide(
        K, np.outer(lengths, lengths), out=np.zeros_like(K), where=np.outer(lengths, lengths) > 0.0
    )
    np.testing.assert_allclose(Spectrum(3).normalized()(WORDS), expected, rtol=1e-14)
    assert not expected[0].any()


def test_kmers_that_are_frequent_and_rare_in_training_count_alike():
    texts = ["aaaa" + word for word in WORDS]  # "aaa" is in a dense column, most others in sparse ones
    [(_, group)] = grouped([Spectrum(3)], np.array(texts, dtype=object)[:, None])
    rows = group.training_rows(None)
    assert len(rows.known) == 2
    [K] = group.values(rows, rows)
    np.testing.assert_array_equal(K, [[shared_kmers(s, t, 3) for t in texts] for s in texts])


@pytest.mark.parametrize("kernel", [Spectrum(1), Subsequence(1), Subsequence(3)])
def test_empty_strings_share_nothing(kernel):
    np.testing.assert_array_equal(kernel(["", ""]), np.zeros((2, 2)))
    np.testing.assert_array_equal(kernel(["", ""], ["abc"]), np.zeros((2, 1)))
    np.testing.assert_array_equal(kernel.diagonal(["", "", ""]), np.zeros(3))


def test_two_sets_of_new_strings_share_kmers_that_no_training_string_has():
    training, X, Z = (
        np.array(t, dtype=object)[:, None] for t in (["abc"], ["xyz abc", "pq"], ["q xyz", "pqr"])
    )
    [(_, group)] = grouped([Spectrum(2)], training)
    [K] = group.values(group.rows(X), group.rows(Z))
    np.testing.assert_array_equal(K, Spectrum(2).matrix(Pairs(X, Z)))
    assert K.sum() > 0.0


@pytest.mark.parametrize("kernel", [Spectrum(2), Subsequence(2)])
@pytest.mark.parametrize(
    "kind",
    [
        list,
        tuple,
        np.array,
        pd.Series,
        lambda c: pd.Series(c, dtype="category"),
        pl.Series,
        lambda c: pd.DataFrame({"t": c}),
        lambda c: pl.DataFrame({"t": c}),
        lambda c: np.array(c, dtype=object)[:, None],
    ],
)
def test_every_holder_of_text_gives_the_same_kernel(kernel, kind):
    np.testing.assert_array_equal(kernel(kind(WORDS)), kernel(WORDS))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: Spectrum(0)(WORDS), "Spectrum cannot use k=0; it has to be a whole number >= 1, or a pair"),
        (lambda: Spectrum((3, 2))(WORDS), r"k=\(3, 2\)"),
        (lambda: Spectrum((1, 2, 3))(WORDS), r"k=\(1, 2, 3\)"),
        (lambda: Spectrum("3")(WORDS), "k='3'"),
        (lambda: Spectrum(True)(WORDS), "k=True"),
        (lambda: Subsequence(0)(WORDS), "length=0"),
        (lambda: Subsequence(decay=0.0)(WORDS), "decay=0.0; it has to be a number above 0 and at most 1"),
        (lambda: Subsequence(decay=1.5)(WORDS), "decay=1.5"),
        (lambda: Subsequence(decay=float("nan"))(WORDS), "decay=nan"),
        (lambda: Spectrum()(["a", 3]), r"spectrum\(k=3\) reads text, received int 3 in row 1"),
        (lambda: Spectrum()([["a"], ["b", "c"]]), "reads text, received list"),
        (lambda: Spectrum()(np.array([["a", "b"]])), "reads one column of objects, received 2"),
        (lambda: Spectrum()(3), "needs a list or a column of objects, received int"),
        (lambda: Gaussian(gamma=1.0)(["a", "b"]), "reads numbers .*; use Spectrum, Jaccard"),
    ],
)
def test_what_cannot_be_read_is_named(use, message):
    with pytest.raises((TypeError, ValueError), match=message):
        use()
