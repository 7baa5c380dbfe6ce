"""The studies of OBSCURE measure what they say."""

import pytest

from kernelweave.datasets import load
from kernelweave.experiments.papers.obscure import MACHINES, STAGES, Epochs, Multiclass


@pytest.fixture(scope="module")
def data():
    try:
        load("mfeat")
    except Exception as error:  # the loaders say what is missing, and where
        pytest.skip(f"needs mfeat.npz: {error}")


def test_cells_have_all_methods_and_quick_ones_are_among_them():
    for study, methods in ((Epochs(), STAGES), (Multiclass(), MACHINES)):
        cells = study.cells(quick=False)
        assert {cell["method"] for cell in cells} == set(methods)
        assert all(cell in cells for cell in study.cells(quick=True))
        assert len({str(cell) for cell in cells}) == len(cells)
    assert Epochs().protocol != Multiclass().protocol


def test_an_algorithm_is_never_below_the_proved_optimum(data):
    measures = Epochs().measure({"epochs": 2, "split": 0, "method": "OBSCURE"}, None)
    assert measures["excess"] > -1e-9
    assert 0.5 < measures["accuracy"] <= 1.0


def test_all_classes_at_once_are_compared_on_the_same_split(data):
    found = [Multiclass().measure({"size": 100, "split": 0, "method": m}, None) for m in MACHINES[:2]]
    assert all(0.7 < one["accuracy"] <= 1.0 for one in found)
    assert all(one["relative_gap"] <= 1e-2 for one in found)
