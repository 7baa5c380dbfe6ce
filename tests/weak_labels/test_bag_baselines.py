"""The baselines for bags: SIL, mi-SVM, MI-SVM and the set kernel."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC
from tests.reference import weak
from tests.weak_labels.data import BANK, BASELINES, FIXED, bag_problem, witness_bags

from kernelweave import InstanceLabelMKLClassifier, SingleInstanceMKLClassifier, WitnessMKLClassifier
from kernelweave.geometry import LpBall, Uniform
from kernelweave.solvers import Newton
from kernelweave.weak_labels.bag_baselines import MixtureTrainer, train_set_kernel, train_witnesses


@pytest.mark.parametrize("Model", BASELINES)
def test_baselines_have_the_same_interface(Model):
    bags, y = witness_bags()
    model = Model(BANK, C=10.0).fit(bags, np.array(["no", "yes"])[y])
    assert model.duality_gap_ <= 1e-3
    assert model.score(bags, np.array(["no", "yes"])[y]) > 0.85
    pooled = [model.pool(part) for part in model.instance_decision_function(bags)]
    np.testing.assert_allclose(pooled, model.decision_function(bags))
    assert model.kernel_weights_.shape == (2,)
    assert cross_val_score(clone(model), bags, y, cv=2).mean() > 0.7


def test_the_set_kernel_is_an_SVM_on_mean_kernel_values():
    problem = bag_problem(linear_kernel, 12, C=1.0)
    fit = train_set_kernel(MixtureTrainer(Uniform(), Newton(tol=1e-8)), problem)
    B = weak.bag_kernel(problem.grams[0], problem.members, np.ones(12))
    svc = SVC(kernel="precomputed", C=1.0, tol=1e-8).fit(B, problem.signs)
    values = fit.values(problem.grams)
    ours = [values[bag].mean() for bag in problem.members]
    np.testing.assert_allclose(ours, svc.decision_function(B), atol=1e-4)


def test_witnesses_settle_on_the_highest_instances():
    problem = bag_problem(linear_kernel, 12, C=10.0)
    fit = train_witnesses(MixtureTrainer(Uniform(), Newton(tol=1e-3)), problem, max_rounds=20)
    values = fit.values(problem.grams)
    assert all(values[problem.members[bag]].argmax() == 1 for bag in np.flatnonzero(problem.signs > 0))
    assert fit.n_rounds < 20


def test_instances_are_relabelled_until_the_labels_are_those_predicted():
    bags, y = witness_bags()
    start = SingleInstanceMKLClassifier(FIXED, threshold="zero").fit(bags, y)
    model = InstanceLabelMKLClassifier(FIXED, threshold="zero").fit(bags, y)

    def other_positives(fitted):
        labels = [part for part, label in zip(fitted.predict_instances(bags), y, strict=True) if label]
        return np.mean(np.concatenate([np.delete(part, 1) for part in labels]))

    assert 1 < model.n_rounds_ < 20
    assert other_positives(start) > 0.4  # every instance took the label of its bag
    assert other_positives(model) < 0.1  # only the witness keeps it
    capped = InstanceLabelMKLClassifier(FIXED, threshold="zero", max_rounds=1).fit(bags, y)
    np.testing.assert_allclose(capped.decision_function(bags), start.decision_function(bags))


@pytest.mark.parametrize("Model", [InstanceLabelMKLClassifier, WitnessMKLClassifier])
def test_the_number_of_rounds_is_checked(Model):
    bags, y = witness_bags(8)
    with pytest.raises(ValueError, match="max_rounds must be a whole number of at least 1; got None"):
        Model(max_rounds=None).fit(bags, y)


@pytest.mark.parametrize("Model", BASELINES)
@pytest.mark.parametrize(("geometry", "what"), [("l2", "'l2'"), (LpBall, "the class LpBall")])
def test_the_geometry_has_to_be_one(Model, geometry, what):
    bags, y = witness_bags(8)
    with pytest.raises(TypeError, match=rf"geometry must be a Geometry such as LpBall\(p=2\); got {what}"):
        Model(geometry=geometry).fit(bags, y)
