"""The page on defaults is made of its results; ranks share ties; probabilities are judged by their bins."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.__main__ import DEFAULTS_PAGE, RESULTS
from benchmarks.page import defaults_page

from benchmarks import defaults


def test_the_page_is_what_the_results_make():
    assert DEFAULTS_PAGE.read_text(encoding="utf-8") == defaults_page(defaults, RESULTS)


def test_every_set_is_on_the_page_with_gains_and_losses():
    rows, text = json.loads((RESULTS / "defaults.json").read_text())["rows"], DEFAULTS_PAGE.read_text()
    for row in rows:
        [line] = [line for line in text.splitlines() if line.startswith(f"| {row['set']} |")]
        for value in row["accuracy"].values():
            assert f"{100 * value:.1f}" in line


def test_each_of_ours_is_ranked_alone_and_ties_share():
    row = {"accuracy": {"MKLClassifier()": 0.9, "MKLClassifierCV()": 0.95, "rf": 0.9, "hgb": 0.8}}
    assert defaults.places(row, "MKLClassifier()") == {"MKLClassifier()": 1.5, "rf": 1.5, "hgb": 3.0}
    assert defaults.places(row, "MKLClassifierCV()")["MKLClassifierCV()"] == 1.0


def test_the_calibration_error_is_the_distance_of_confidence_and_hits():
    proba = np.array([[0.95, 0.05], [0.95, 0.05], [0.35, 0.65], [0.35, 0.65]])
    y = np.array([0, 1, 1, 1])
    assert defaults.calibration_error(proba, np.array([0, 1]), y) == pytest.approx(0.5 * 0.45 + 0.5 * 0.35)


def test_a_set_is_read_from_its_file_and_measured(tmp_path, rng):
    y = np.repeat([0, 1], 30)
    counts = sp.csr_matrix(rng.poisson(0.2 + 0.5 * y[:, None], (60, 8)))
    parts = {f"sparse_b_{name}": getattr(counts, name) for name in ("data", "indices", "indptr", "shape")}
    facts = {"n_train": 40, "n_test": 20, "role": "tune", "kind": "mv"}
    np.savez(tmp_path / "toy.npz", y=y, view_a=rng.normal(size=(60, 3)) + 2.0 * y[:, None], **parts, **facts)
    assert defaults.measure(tmp_path / "toy.npz", {}, role="confirm") is None
    known = {name: [0.5] * 4 for name in defaults.WORDS if name not in ("sumrbf", "late")}
    row = defaults.measure(tmp_path / "toy.npz", known)
    assert (row["views"], row["classes"], row["role"]) == (2, 2, "tune")
    assert set(row["accuracy"]) == {*defaults.OURS, *defaults.WORDS}
    assert row["accuracy"]["rf"] == 0.5
    assert min(row["accuracy"][name] for name in (*defaults.OURS, "late", "sumrbf")) > 0.7
    assert set(row["probabilities"]) == {
        f"{what}, {name}" for what in ("log loss", "calibration error") for name in ("temperature", "sigmoid")
    }
