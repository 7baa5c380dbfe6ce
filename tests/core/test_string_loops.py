"""The loops over strings against a programme by the recursion of the definition, and what they refuse."""

from functools import cache

import numpy as np
import pytest

from kernelweave import _core


def packed(texts):
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return np.array([letter for text in texts for letter in text], dtype=np.uint32), ends


def shared(s, t, length, decay):
    """Pairs of places whose last ones are a and b: the one before lies anywhere earlier."""

    @cache
    def ending(a, b, letters):
        if s[a] != t[b]:
            return 0.0
        if letters == 1:
            return decay**2
        return sum(ending(i, j, letters - 1) * decay ** (a - i + b - j) for i in range(a) for j in range(b))

    return sum(ending(a, b, length) for a in range(len(s)) for b in range(len(t)))


@pytest.mark.parametrize("length", [1, 2, 4])
def test_texts_of_any_length_are_compared_in_any_number(rng, length):
    left = [tuple(rng.integers(0, 3, size)) for size in (0, 1, 5, 9)]
    right = [tuple(rng.integers(0, 3, size)) for size in (7, 0, 2, 3, 8, 1, 4, 6, 5, 5, 9)]  # more than lanes
    out = np.full((4, 11), np.nan)
    _core.subsequence_values(*packed(left), *packed(right), length, 0.6, False, out)
    np.testing.assert_allclose(out, [[shared(s, t, length, 0.6) for t in right] for s in left], rtol=1e-13)
    for count in (1, 8, 11):
        own = np.full((count, count), np.nan)
        _core.subsequence_values(*packed(right[:count]), *packed(right[:count]), length, 0.6, True, own)
        expected = [[shared(s, t, length, 0.6) for t in right[:count]] for s in right[:count]]
        np.testing.assert_allclose(own, expected, rtol=1e-13)
        np.testing.assert_array_equal(own, own.T)
    diagonal = np.full(11, np.nan)
    _core.subsequence_diagonal(*packed(right), length, 0.6, diagonal)
    np.testing.assert_allclose(diagonal, [shared(t, t, length, 0.6) for t in right], rtol=1e-13)


def test_texts_that_do_not_fit_are_refused():
    letters, ends = packed([(1, 2), (3,)])
    out = np.empty((2, 2))
    for starts in (ends + 1, ends[::-1].copy(), ends[:2], ends[:0]):
        with pytest.raises(ValueError, match="texts: start must"):
            _core.subsequence_values(letters, starts, letters, ends, 1, 0.5, False, out)
    with pytest.raises(ValueError, match="length must be at least 1"):
        _core.subsequence_values(letters, ends, letters, ends, 0, 0.5, False, out)
    with pytest.raises(ValueError, match="one row per left and one column per right text"):
        _core.subsequence_values(letters, ends, letters, ends, 1, 0.5, False, out[:1])
    with pytest.raises(ValueError, match="one entry per text"):
        _core.subsequence_diagonal(letters, ends, 1, 0.5, np.empty(3))
