"""Files become the samples they are said to be, or one sentence says why not."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.datasets.data import load_or_skip

from kernelweave.bank import Views
from kernelweave.datasets import data_directory, fetch, load, names, openml
from kernelweave.datasets.catalogue import CATALOGUE
from kernelweave.errors import DataError


@pytest.mark.parametrize("name", names())
def test_every_file_has_the_shape_and_the_classes_it_is_known_for(name):
    data = load_or_skip(name)
    known = CATALOGUE[name]
    assert len(data.y) == known.n_samples
    assert data.X.shape[1] == known.n_features
    if "bag" in data.extra:
        assert len(data.extra["bag"]) == data.X.shape[0]
        assert np.unique(data.extra["bag"]).size == known.n_samples
    if isinstance(data.X, Views):
        assert len(data.X) == known.n_samples


def test_the_constant_column_of_ionosphere_is_dropped():
    assert (np.ptp(load_or_skip("ionosphere").X, axis=0) > 0).all()


def test_an_unknown_name_gets_the_known_ones(tmp_path):
    with pytest.raises(DataError, match=r"no data set 'hart'; there are .*heart"):
        load("hart", tmp_path)


def test_a_missing_folder_or_file_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    with pytest.raises(DataError, match="--data or set KERNELWEAVE_DATA"):
        load("heart")
    with pytest.raises(DataError, match="does not exist"):
        load("heart", tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"heart\.npz is not in"):
        load("heart", tmp_path)


def test_the_environment_variable_names_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path))
    assert data_directory() == tmp_path


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not really", b"no zip at all"])
def test_a_broken_file_is_named(tmp_path, content):
    (tmp_path / "heart.npz").write_bytes(content)
    with pytest.raises(DataError, match="cannot be read as an"):
        load("heart", tmp_path)


def test_a_file_with_other_content_is_named(tmp_path):
    np.savez(tmp_path / "heart.npz", X=np.zeros((270, 12)), y=np.repeat([-1, 1], [150, 120]))
    with pytest.raises(DataError, match="270 labels and 13 columns, received 270 and 12"):
        load("heart", tmp_path)
    np.savez(tmp_path / "heart.npz", X=np.zeros((270, 13)), y=np.repeat([-1, 1], [149, 121]))
    with pytest.raises(DataError, match=r"classes of \(150, 120\) samples, received \(149, 121\)"):
        load("heart", tmp_path)
    np.savez(tmp_path / "heart.npz", X=np.zeros((270, 13)))
    with pytest.raises(DataError, match="no array 'y'"):
        load("heart", tmp_path)


def test_pickled_content_is_not_executed(tmp_path):
    np.savez(tmp_path / "heart.npz", X=np.array([{"an": "object"}], dtype=object), y=np.ones(1))
    with pytest.raises(DataError, match="cannot be read"):
        load("heart", tmp_path)


def test_openml_gives_the_same_labels_whatever_they_are_called(monkeypatch):
    labels = np.repeat(["absent", "present"], [150, 120])
    asked = {}

    def answer(**question):
        asked.update(question)
        return SimpleNamespace(data=np.arange(270.0 * 13).reshape(270, 13), target=labels)

    monkeypatch.setattr(openml, "fetch_openml", answer)
    data = fetch("heart", cache=False)
    assert asked["name"] == "heart-statlog"
    assert asked["cache"] is False
    assert (data.y == np.where(labels == "present", 1, -1)).all()
    labels = labels[:-1]
    with pytest.raises((DataError, ValueError)):
        fetch("heart")
