"""Displays of weights, paths, contributions and certificates show the numbers they are given."""

import numpy as np
import pytest

from kernelweave import KernelBank, MKLClassifier, path
from kernelweave.evaluation import paired
from kernelweave.explain import ViewCosts, contributions, weight_stability
from kernelweave.geometry import BoxSimplex
from kernelweave.plots import (
    CertificateDisplay,
    ComparisonDisplay,
    ContributionsDisplay,
    PathDisplay,
    WeightsDisplay,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
Y = X[:, 0] + 0.5 * X[:, 1] > 0
BANK = KernelBank.per_view(views={"a": [0], "b": [1], "c": [2]})


@pytest.fixture(scope="module")
def model():
    return MKLClassifier(BANK).fit(X, Y)


def test_bars_are_the_weights_and_lines_the_intervals(model):
    bars = WeightsDisplay.from_estimator(model).ax_.patches
    np.testing.assert_allclose([bar.get_width() for bar in bars], model.kernel_weights_)
    found = weight_stability(MKLClassifier(BANK), X, Y, n_resamples=5, random_state=0)
    ax = WeightsDisplay.from_stability(found).ax_
    ends = np.array([segment[:, 0] for segment in ax.collections[0].get_segments()])
    np.testing.assert_allclose(ends, np.column_stack([found.lower, found.upper]))
    assert [text.get_text() for text in ax.texts] == [f"{share:.0%}" for share in found.frequency]


def test_a_path_has_a_line_per_kernel():
    weights = path(
        MKLClassifier(BANK, geometry=BoxSimplex(theta=1.0)), X, Y, param="geometry__theta", values=[0.4, 1.0]
    )
    lines = PathDisplay.from_path(weights).ax_.get_lines()
    np.testing.assert_allclose([line.get_ydata() for line in lines], weights.kernel_weights.T)


def test_bars_of_a_sample_reach_from_its_negative_to_its_positive_parts(model):
    found = contributions(model, X[:5])
    display = ContributionsDisplay.from_contributions(found)
    np.testing.assert_allclose(display.decision, model.decision_function(X[:5]), atol=1e-9)
    (dots,) = [line for line in display.ax_.get_lines() if line.get_label() == "decision"]
    np.testing.assert_allclose(dots.get_xdata(), display.decision)
    parts = np.column_stack([found.values, np.full(5, float(found.intercept))])
    bars = np.array([[bar.get_x(), bar.get_x() + bar.get_width()] for bar in display.ax_.patches]).reshape(
        4, 5, 2
    )
    np.testing.assert_allclose(bars.max(axis=(0, 2)), np.maximum(parts, 0).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(bars.min(axis=(0, 2)), np.minimum(parts, 0).sum(axis=1), atol=1e-12)


def test_beyond_two_classes_one_is_shown():
    three = MKLClassifier(BANK, multiclass="per_class").fit(X, np.digitize(X[:, 0], [-0.4, 0.4]))
    display = ContributionsDisplay.from_contributions(contributions(three, X[:2]).by_view(), problem=2)
    np.testing.assert_allclose(display.decision, three.decision_function(X[:2])[:, 2], atol=1e-9)
    assert CertificateDisplay.from_estimator(three, problem=1).upper[-1] == three.certificates_[1].upper


def test_the_bounds_close_in_on_the_certificate(model):
    display = CertificateDisplay.from_estimator(model)
    assert display.upper.min() == pytest.approx(model.certificate_.upper)
    upper, lower = (line.get_ydata() for line in display.ax_.get_lines())
    assert (upper >= lower).all()
    assert (np.diff(upper) <= 0).all()


@pytest.mark.parametrize("display", [WeightsDisplay, CertificateDisplay])
def test_a_model_that_is_not_fitted_is_one_sentence(display):
    with pytest.raises(ValueError, match="call fit first"):
        display.from_estimator(MKLClassifier())


def test_they_save_the_same_file_twice(model, tmp_path):
    display = WeightsDisplay.from_estimator(model)
    for name in ("one.svg", "two.png"):
        display.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000


def test_intervals_of_differences_are_drawn_as_they_are():
    scores = {"average": [0.8, 0.85, 0.9], "learnt": [0.9, 0.9, 0.91], "other": [0.7, 0.8, 0.95]}
    display = ComparisonDisplay.from_scores(scores, "average", test_share=1 / 3)
    assert list(display.names) == ["learnt", "other"]
    ends = np.array([segment[:, 0] for segment in display.ax_.collections[0].get_segments()])
    expected = [paired(scores[name], scores["average"], test_share=1 / 3) for name in display.names]
    np.testing.assert_allclose(ends, [one.interval for one in expected])
    np.testing.assert_allclose(display.ax_.get_lines()[1].get_xdata(), [one.difference for one in expected])
    with pytest.raises(ValueError, match="no scores of 'best'"):
        ComparisonDisplay.from_scores(scores, "best")
    lost = ComparisonDisplay.from_costs(ViewCosts(np.array([0.9, 0.8]), {"a": np.array([0.7, 0.7])}, 0.5))
    assert lost.differences.tolist() == pytest.approx([0.15])
