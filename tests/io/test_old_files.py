"""Model files of earlier versions load, and predict what they predicted when they were written."""

from pathlib import Path

import numpy as np
import pytest

from kernelweave.io import about, load

pytest.importorskip("skops")
FOLDERS = sorted(path for path in Path(__file__).parent.glob("version_*") if path.is_dir())
FILES = [path for folder in FOLDERS for path in sorted(folder.glob("*.kw"))]


def argument(path):
    """Return what the model of this file was asked about, from the inputs beside it."""
    import kernelweave as kw

    d = dict(np.load(path.parent / "inputs.npz"))
    X, new = d["X"], d["new"]
    if path.stem in ("multi_instance", "set_kernel"):
        return kw.Bags(new, np.repeat(np.arange(6), 2))
    return {
        "classifier_precomputed": [new @ X.T, np.exp(-((new[:, None] - X) ** 2).sum(axis=2))],
        "classifier_per_feature": new[:, :2],
        "classifier_chi_squared": np.abs(new),
        "itml": d["pairs"],
        "itml_plus": d["pairs"],
    }.get(path.stem, new)


def test_there_are_files_of_every_kind_of_model():
    assert len(FILES) >= 32


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_old_file_predicts_what_it_did(path):
    model, expected = load(path), np.load(path.parent / "expected.npz")[path.stem]
    found = getattr(model, about(path)["notes"]["method"])(argument(path))
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_old_model_shows_what_it_learnt(path):
    model = load(path)
    assert repr(model)
    for name in ("kernel_weights_", "certificate_", "duality_gap_", "history_", "storage_"):
        if name in vars(model):
            assert repr(getattr(model, name))
    if "certificate_" in vars(model):
        assert model.certificate_.lower <= model.certificate_.upper
