"""Labels that are plainly classes are not looked at as closely as others, and come out the same."""

import numpy as np
import pytest
from sklearn.utils.multiclass import check_classification_targets

from kernelweave.estimators.targets import encode_labels

WHOLE = [np.float64, np.float32, np.int64, np.int8, np.uint16]


@pytest.mark.parametrize("kind", [*WHOLE, bool, str, list])
def test_whatever_they_are_written_in_they_mean_the_same(kind):
    numbers = np.array([1, 0, 1, 1, 0, 0, 1])
    y = numbers.tolist() if kind is list else numbers.astype(kind)
    classes, index = encode_labels(y, 7)
    np.testing.assert_array_equal(index, numbers)
    expected = np.unique(np.asarray(y))
    np.testing.assert_array_equal(classes, expected)
    assert classes.dtype == expected.dtype


@pytest.mark.parametrize("bad", [0.5, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_that_are_no_classes_are_refused(bad, dtype):
    y = np.array([0.0, 1.0, bad, 1.0], dtype=dtype)
    with pytest.raises(ValueError, match=r"continuous|NaN|infinity"):
        encode_labels(y, 4)


def test_many_classes_are_warned_of_as_scikit_learn_does():
    y = np.arange(40)
    with pytest.warns(UserWarning, match="classes"):
        check_classification_targets(y)
    with pytest.warns(UserWarning, match="classes"):
        encode_labels(y, 40)


def test_a_column_is_one_and_a_table_is_none():
    with pytest.warns(Warning, match="column"):
        classes, _ = encode_labels(np.array([[0], [1], [1]]), 3)
    np.testing.assert_array_equal(classes, [0, 1])
    with pytest.raises(ValueError, match=r"1d|shape"):
        encode_labels(np.eye(3), 3)
    with pytest.raises(ValueError, match="labels"):
        encode_labels(np.array([0, 1]), 3)
    with pytest.raises(ValueError):
        encode_labels(np.array([], dtype=int), 0)
