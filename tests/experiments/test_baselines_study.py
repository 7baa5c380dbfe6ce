"""The study of methods that weigh first: its cells, its noise, and that a cell is what it says."""

from dataclasses import replace

import numpy as np
import pytest

from kernelweave.experiments import experiment
from kernelweave.experiments.papers.baselines import METHODS, STUDY, VIEWS


def test_every_method_meets_every_data_set_with_and_without_noise():
    cells = STUDY.cells(quick=False)
    assert len(cells) == len(METHODS) * len(VIEWS) * 2 * STUDY.splits
    assert {cell["split"] for cell in STUDY.cells(quick=True)} == {0, 1}
    assert experiment("baselines").study is STUDY


def test_noise_knows_nothing_and_splits_are_those_without_noise():
    plain, y = STUDY._views("wine", False, 3)
    noisy, _ = STUDY._views("wine", True, 3)
    assert list(noisy) == [*plain, *(f"noise {name}" for name in plain)]
    for name, table in plain.items():
        np.testing.assert_array_equal(noisy[name], table)
        assert np.abs(np.corrcoef(noisy[f"noise {name}"][:, 0], y)[0, 1]) < 0.3
    train, test = STUDY._split("wine", y, 3)
    assert len(train) == STUDY.n_train
    assert not set(train) & set(test)


def test_a_cell_is_the_same_whenever_it_is_run():
    cell = {"dataset": "wine, noise", "split": 1, "method": "ALIGNF"}
    first, again = STUDY.measure(cell, None), STUDY.measure(cell, None)
    assert first == again
    assert first["accuracy"] > 0.9
    assert first["weight_on_noise"] < 0.2


def test_even_weights_leave_noise_its_half():
    cell = {"dataset": "breast cancer, noise", "split": 0, "method": "AveKernel"}
    assert STUDY.measure(cell, None)["weight_on_noise"] == pytest.approx(0.5)


def test_another_protocol_has_another_fingerprint():
    assert replace(STUDY, n_train=50).protocol != STUDY.protocol
    assert replace(STUDY, splits=3).protocol == STUDY.protocol  # more splits of the same
