"""The studies of the Fisher discriminant: cells are what plain code gives, and the findings are in them."""

import numpy as np
import pytest
from tests.datasets.data import FOLDER, load_or_skip

from kernelweave.datasets import overlapping_gaussians
from kernelweave.experiments.papers.fisher import NoiseStudy, RoundsStudy, SimulationStudy
from kernelweave.experiments.views import Weights


def plain_error(Ks, crossed, y, y_test, reg):
    """The discriminant of one given kernel, centred by hand with the training means."""
    n = len(y)
    P = np.eye(n) - 1.0 / n
    a = np.where(y > 0, 1.0 / (y > 0).sum(), -1.0 / (y < 0).sum())
    alpha = np.linalg.solve(np.eye(n) + P @ Ks @ P / reg, a)
    f = P @ Ks @ P @ alpha
    new = (crossed - crossed.mean(axis=1, keepdims=True) - Ks.mean(axis=0) + Ks.mean()) @ alpha
    cut = (f[y > 0].mean() + f[y < 0].mean()) / 2
    return float(np.mean(np.where(new > cut, 1, -1) != y_test))


def gaussians(A, B):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * 0.3**2))


def test_equal_weights_are_the_discriminant_of_the_average_kernel():
    cell = {"kernels": 5, "split": 3, "method": "uniform"}
    drawn = overlapping_gaussians(5, random_state=5003)
    new = drawn.extra["X_test"]
    names = drawn.X.names
    K = np.mean([gaussians(drawn.X[v], drawn.X[v]) for v in names], axis=0)
    crossed = np.mean([gaussians(new[v], drawn.X[v]) for v in names], axis=0)
    expected = plain_error(K, crossed, drawn.y, drawn.extra["y_test"], 1e-4)
    assert SimulationStudy().measure(cell, None)["error"] == pytest.approx(expected, abs=1e-12)


def test_with_many_kernels_l2_errs_less_than_l1():
    study = SimulationStudy()
    errors = {
        method: np.mean(
            [study.measure({"kernels": 40, "split": s, "method": method}, None)["error"] for s in range(3)]
        )
        for method in ("l1", "l2")
    }
    assert errors["l2"] < errors["l1"] - 0.03


def test_column_generation_takes_few_rounds_for_l2_and_many_for_l1():
    measure = RoundsStudy().measure
    solves = {
        norm: measure({"kernels": 10, "split": 0, "method": f"{norm}, column generation"}, None)["machines"]
        for norm in ("l1", "l2")
    }
    assert solves["l2"] <= 5
    assert solves["l1"] >= 20


def test_noise_levels_are_nested_and_random_kernels_know_nothing():
    load_or_skip("mfeat")
    few, _, y, _ = NoiseStudy().kernels({"informative": 3, "split": 0}, FOLDER)
    more, crossed, again, _ = NoiseStudy().kernels({"informative": 6, "split": 0}, FOLDER)
    assert len(few) == len(more) == len(crossed) == 30
    np.testing.assert_array_equal(y, again)
    for m in range(3):
        np.testing.assert_array_equal(few[m], more[m])
    np.testing.assert_array_equal(few[6], more[6])
    np.testing.assert_allclose([np.trace(K) for K in more], 1.0)
    assert crossed[0].shape == (1000, 200)
    nothing = NoiseStudy().measure({"informative": 0, "split": 0, "method": "l2"}, FOLDER)
    assert nothing["map"] < 0.2
    assert nothing["share_of_random"] == pytest.approx(1.0)


def test_weights_are_shown_kernel_by_kernel(tmp_path):
    records = [
        {"kernels": 2, "split": 0, "method": "l1", "weight000": 0.0, "weight001": 0.5},
        {"kernels": 2, "split": 0, "method": "l2", "weight000": 0.4, "weight001": 0.8},
        {"kernels": 2, "split": 1, "method": "l1"},
    ]
    view = Weights("kernels", (2, 9), ("l1", "l2"), "number of kernels")
    (table,) = view.tables(records)
    assert table.rows == (("2", "l1", "1", "0.00 1.00"), ("2", "l2", "2", "0.50 1.00"))
    assert view.draw(records, tmp_path / "weights.svg")
    assert (tmp_path / "weights.svg").stat().st_size > 1000
    assert not view.draw([], tmp_path / "nothing.svg")
