"""The studies of OBSCURE measure what they say."""

import gzip

import numpy as np
import pytest
from tests.datasets.data import FOLDER, load_or_skip

from kernelweave.datasets import Dataset
from kernelweave.datasets.fashion_mnist import fashion_mnist
from kernelweave.errors import DataError
from kernelweave.experiments.papers import obscure
from kernelweave.experiments.papers.obscure import (
    CLASSIFIERS,
    DIGIT_TASKS,
    SIZE_METHODS,
    SIZES,
    STAGES,
    DigitsStudy,
    EpochsStudy,
    MulticlassStudy,
    SizesStudy,
)

STUDIES = {
    EpochsStudy(): STAGES,
    MulticlassStudy(): CLASSIFIERS,
    DigitsStudy(): CLASSIFIERS,
    SizesStudy(): SIZE_METHODS,
}


@pytest.fixture(scope="module")
def data():
    load_or_skip("mfeat")
    return FOLDER


def test_cells_have_all_methods_and_quick_ones_are_among_them():
    for study, methods in STUDIES.items():
        cells = study.cells(quick=False)
        assert {cell["method"] for cell in cells} == set(methods)
        assert all(cell in cells for cell in study.cells(quick=True))
        assert len({str(cell) for cell in cells}) == len(cells)
    assert len({study.protocol for study in STUDIES}) == len(STUDIES)


def test_an_algorithm_is_never_below_the_proved_optimum(data):
    measures = EpochsStudy().measure({"epochs": 2, "split": 0, "method": "OBSCURE"}, data)
    assert measures["excess"] > -1e-9
    assert 0.5 < measures["accuracy"] <= 1.0


def test_all_classes_at_once_are_compared_on_the_same_split(data):
    found = [MulticlassStudy().measure({"size": 100, "split": 0, "method": m}, data) for m in CLASSIFIERS[:2]]
    assert all(0.7 < one["accuracy"] <= 1.0 for one in found)
    assert all(one["relative_gap"] <= 1e-2 for one in found)


def test_every_classifier_learns_the_digits():
    found = [
        DigitsStudy().measure({"dataset": DIGIT_TASKS[0], "split": 0, "method": m}, None) for m in CLASSIFIERS
    ]
    assert all(0.9 < one["accuracy"] < 1.0 for one in found)
    assert all(one["relative_gap"] <= 1e-2 for one in found)
    assert all(one["seconds"] > 0.0 and one["predict_seconds"] > 0.0 for one in found)


def test_sizes_are_measured_on_the_first_samples(monkeypatch):
    """Two classes that differ in one quarter of the picture, in place of clothes."""

    def drawn(part):
        rng = np.random.default_rng(len(part))
        y = np.arange(300) % 2
        X = rng.normal(0.5, 0.2, size=(300, 28, 28))
        X[:, :14, :14] += 0.1 * y[:, None, None]
        return Dataset("toy", X.reshape(300, 784).astype(np.float32), y)

    monkeypatch.setattr(obscure, "fashion_mnist", drawn)
    found = [SizesStudy().measure({"size": 200, "split": 0, "method": m}, None) for m in SIZE_METHODS]
    assert all(one["error"] < 0.1 and one["seconds"] > 0.0 for one in found)
    assert found[0]["support"] <= 200  # not the 300 that there are
    assert 0.0 < found[0]["relative_gap"] < 0.2
    most = max(cell["size"] for cell in SizesStudy().cells(quick=False) if cell["method"] == SIZE_METHODS[1])
    assert most == SizesStudy().svc_samples < max(SIZES)


def test_files_of_fashion_mnist_that_are_not_right_are_named(tmp_path):
    with pytest.raises(DataError, match="no part 'test' of Fashion-MNIST; there are train, t10k"):
        fashion_mnist("test")
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte.gz is not in .*; install dataset-fashion"):
        fashion_mnist("train", tmp_path)
    file = tmp_path / "t10k-images-idx3-ubyte.gz"
    file.write_bytes(b"not gzip")
    with pytest.raises(DataError, match=r"t10k-images.* cannot be read .*; get it again"):
        fashion_mnist("t10k", tmp_path)
    file.write_bytes(gzip.compress(bytes(16 + 784)))
    with pytest.raises(DataError, match="should hold 7840000 values, received 784"):
        fashion_mnist("t10k", tmp_path)
    file.write_bytes(gzip.compress(bytes(16) + bytes([51]) * 7_840_000))
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(8) + bytes([7]) * 10_000))
    found = fashion_mnist("t10k", tmp_path)
    assert found.X.shape == (10_000, 784)
    assert found.X.dtype == np.float32
    assert found.X[0, 0] == np.float32(0.2)
    assert set(found.y) == {7}
