"""The studies no paper has: clusters are compared whatever their names, intervals with a larger sample."""

import numpy as np
import pytest

from kernelweave import KernelBank, MKLClassifier
from kernelweave.experiments.papers import clustering, weight_intervals
from kernelweave.kernels import Gaussian

CELL = {"dataset": "moons", "split": 0, "method": "k-means"}


def test_clusters_count_whatever_they_are_called(monkeypatch):
    study = clustering.ClusteringStudy()
    found = study.measure(CELL, None)
    assert 0.5 <= found["accuracy"] < 1.0  # k-means cuts the moons in two halves
    as_is = clustering.clusters

    def renamed(*arguments):
        labels, gap = as_is(*arguments)
        return 1 - labels, gap

    monkeypatch.setattr(clustering, "clusters", renamed)
    assert study.measure(CELL, None) == pytest.approx(found)


@pytest.mark.parametrize("method", clustering.METHODS)
def test_every_method_returns_two_clusters(method):
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 20, axis=0) + np.random.default_rng(0).normal(size=(40, 2))
    labels, gap = clustering.clusters(method, X, KernelBank([Gaussian()]), 0)
    assert len(np.unique(labels[:20])) == len(np.unique(labels[20:])) == 1
    assert labels[0] != labels[-1]
    assert (gap is None) == (not method.startswith("IOKL"))


def test_weights_of_the_larger_sample_are_those_of_the_same_problem(monkeypatch):
    monkeypatch.setattr(weight_intervals, "LARGER", 3)
    monkeypatch.setattr(weight_intervals, "RESAMPLES", 4)
    fitted = []
    fit = MKLClassifier.fit

    def recorded(self, X, y, **more):
        fitted.append((len(X), self.learner.C))
        return fit(self, X, y, **more)

    monkeypatch.setattr(MKLClassifier, "fit", recorded)
    found = weight_intervals.IntervalsStudy().measure({"n": 40, "split": 0, "method": "percentiles"}, None)
    assert all(0.0 <= share <= 1.0 for share in found.values())
    assert fitted == [(120, pytest.approx(1.0 / 3.0))]  # the resamples are fitted in another way
    monkeypatch.undo()
    X, y = weight_intervals.draw_samples(40, np.random.default_rng(0))
    once = weight_intervals.simple_mkl(1.0).fit(X, y)
    copies = weight_intervals.simple_mkl(0.2).fit(np.repeat(X, 5, axis=0), np.repeat(y, 5))
    np.testing.assert_allclose(copies.kernel_weights_, once.kernel_weights_, atol=0.02)
