"""Columns are standardised with the statistics of the training rows, and views are found by name."""

import numpy as np
import pytest

from kernelweave.bank import Views
from kernelweave.datasets import Dataset
from kernelweave.experiments.common import standardised, standardised_views, view_named


def test_training_rows_have_mean_0_and_deviation_1_and_constant_columns_become_0(rng):
    X = np.column_stack([rng.normal(5.0, 3.0, size=30), np.full(30, 7.0)])
    train = np.arange(20)
    X[20:] += 100.0  # of which nothing may enter
    scaled = standardised(X, train)
    np.testing.assert_allclose(scaled[train].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(scaled[train].std(axis=0), [1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(scaled[20:, 1], 100.0)
    np.testing.assert_array_equal(standardised_views(Views({"a": X}), train)["a"], scaled)


@pytest.mark.parametrize(("name", "value"), [("a", 1.0), ("more", 2.0)])
def test_a_view_is_one_of_the_table_or_an_extra_array(name, value):
    data = Dataset("d", Views({"a": np.ones((3, 1))}), np.zeros(3), {"more": np.full((3, 1), 2)})
    assert view_named(data, name).tolist() == [[value]] * 3
    assert view_named(Dataset("d", np.eye(2), np.zeros(2)), "X").shape == (2, 2)
