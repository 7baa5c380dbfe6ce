"""Models on features say what was done with the columns, and warn of odd ones, as other models do."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import Landmarks, MKLClassifier, batches, load, save

N = 60


@pytest.fixture
def data(rng):
    y = np.where(np.tile([0, 1], N // 2) > 0, "yes", "no")
    table = pd.DataFrame(
        {
            "patient_id": [f"p{k}" for k in range(N)],
            "v": (y == "yes") + 0.5 * rng.normal(size=N),
            "city": np.tile(["a", "b", "c"], N // 3),
            "leak": y,
        }
    )
    table.loc[3, "v"] = np.nan
    return table, y


def fitted(how, table, y):
    model = MKLClassifier(features=Landmarks(10), random_state=0)
    if how == "table":
        return model.fit(table, y)
    if how == "batches":
        return model.fit(batches(table, y, size=25))
    return model.partial_fit(table, y, classes=["no", "yes"])


@pytest.mark.parametrize("how", ["table", "batches", "stream"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_model_on_features_tells_of_its_columns_as_one_on_kernels(data, how, tmp_path):
    table, y = data
    model, exact = fitted(how, table, y), MKLClassifier().fit(table, y)
    assert set(model.columns_) == set(exact.columns_)
    assert {row.column: row.note for row in model.columns_}["leak"] == "equals the target"
    save(model, tmp_path / "model.kw")
    assert load(tmp_path / "model.kw").columns_ == model.columns_


@pytest.mark.parametrize("how", ["table", "batches", "stream"])
def test_a_model_on_features_warns_of_identifiers_and_of_the_target_among_the_columns(data, how):
    table, y = data
    with (
        pytest.warns(UserWarning, match="'leak' has the target"),
        pytest.warns(UserWarning, match="'patient_id'"),
    ):
        fitted(how, table, y)
