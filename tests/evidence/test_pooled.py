"""Many targets: the shared prior against a general solver, its gap, points, clusters."""

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.evidence.test_likelihood import components_of

from kernelweave.evidence.components import Components
from kernelweave.evidence.likelihood import evaluate
from kernelweave.evidence.newton import EvidenceNewton
from kernelweave.evidence.pooled import (
    PooledEvidence,
    clustered,
    evaluate_near,
    log_likelihoods,
    nearest_points,
    places,
    used_shares,
    weights_at,
)
from kernelweave.evidence.posterior import learn


@pytest.fixture
def many(rng):
    """Targets of two kinds: the first kernel, or the second with more noise."""
    n = 60
    Z = [rng.normal(size=(n, 8)), rng.normal(size=(n, 8))]
    parts = [z @ rng.normal(size=(8, 30)) / np.sqrt(8) for z in Z]
    first = np.arange(30) < 20
    Y = np.where(first, 2.0 * parts[0], parts[1]) + np.where(first, 0.5, 1.0) * rng.normal(size=(n, 30))
    return components_of([z @ z.T for z in Z], Y)[0], first


def test_the_prior_is_the_best_and_its_gap_holds(rng):
    log_likelihood = 2.0 * rng.normal(size=(40, 6))
    solver = PooledEvidence(tol=1e-6, max_iter=20_000)
    found = solver.prior(log_likelihood)

    def loss(z):
        prior = np.exp(z) / np.exp(z).sum()
        own = np.log(np.exp(log_likelihood) @ prior).sum()
        return -(own + solver.pseudo_targets / 6 * np.log(prior).sum())

    best = -minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-9}).fun
    value = -loss(np.log(found.prior))
    assert value == pytest.approx(best, abs=1e-4)
    assert found.prior.sum() == pytest.approx(1.0)
    rough = PooledEvidence(max_iter=2).prior(log_likelihood)
    assert rough.n_iter == 2
    assert 0.0 < best + loss(np.log(rough.prior)) <= 40 * rough.gap
    joint = np.exp(log_likelihood) * found.prior
    np.testing.assert_allclose(found.shares, joint / joint.sum(axis=1, keepdims=True))


def test_pooled_targets_find_their_kinds(many):
    components, first = many
    found = learn(components, PooledEvidence())
    np.testing.assert_allclose(found.shares.sum(axis=1), 1.0)
    share = found.variances / (found.variances.sum(axis=1) + found.noise)[:, None]
    assert (share[first].argmax(axis=1) == 0).all()
    assert (share[~first].argmax(axis=1) == 1).all()
    assert found.prior_gap <= 1e-3
    assert found.slopes is None


def test_the_evidence_under_a_shared_prior_is_close_to_the_maximum(many):
    components, _ = many
    pooled = learn(components, PooledEvidence())
    each = learn(components, EvidenceNewton(spread=np.inf))
    difference = each.log_evidence - pooled.log_evidence
    assert 0.0 < difference.mean() < 3.0


def test_few_points_are_as_many_as_asked_for(many):
    components, _ = many
    points, value, scale = PooledEvidence(n_points=3).likelihoods(components)
    assert len(points) <= 3 + 1 + 2 + 2  # none, even ones twice, one kernel alone
    assert value.shape == scale.shape == (30, len(points))
    some = PooledEvidence(n_points=12, n_near=2).likelihoods(components)[1]
    assert (np.isfinite(some).sum(axis=1) == 2).all()


def test_places_give_the_weights_back(rng):
    theta = rng.uniform(0.0, 5.0, size=(6, 3)) * np.array([1e-3, 0.1, 1.0, 1e2, 1e3, 0.0])[:, None]
    np.testing.assert_allclose(weights_at(places(theta)), theta)


def test_targets_with_hardly_any_noise_get_what_each_gets_by_itself(rng):
    Z = [rng.normal(size=(60, 8)), rng.normal(size=(60, 8))]
    Y = Z[0] @ rng.normal(size=(8, 30)) + Z[1] @ rng.normal(size=(8, 30))
    Y += np.geomspace(0.02, 1.0, 30) * rng.normal(size=(60, 30))
    components = components_of([z @ z.T for z in Z], Y)[0]
    pooled, each = learn(components, PooledEvidence()), learn(components, EvidenceNewton())
    difference = each.log_evidence - pooled.log_evidence
    assert -1.0 < difference.min() <= difference.max() < 8.0
    np.testing.assert_allclose(np.log(pooled.noise), np.log(each.noise), atol=0.2)


def test_a_kernel_that_is_small_beside_another_but_not_beside_the_noise_is_kept(rng):
    Z = [rng.normal(size=(60, 8)), rng.normal(size=(60, 8))]
    parts = [z @ rng.normal(size=(8, 10)) for z in Z]
    Y = 20.0 * parts[0] + parts[1] + 0.3 * rng.normal(size=(60, 10))
    components = components_of([z @ z.T for z in Z], Y)[0]
    pooled, each = learn(components, PooledEvidence()), learn(components, EvidenceNewton())
    assert np.abs(each.log_evidence - pooled.log_evidence).max() < 5.0
    np.testing.assert_allclose(np.log(pooled.noise), np.log(each.noise), atol=0.2)


def test_single_precision_serves_where_it_does_and_nowhere_else(many):
    components, _ = many
    points = np.array([[0.5, 0.5], [30.0, 0.0], [4e5, 1e5]])
    near = np.ones((30, 3), dtype=bool)
    _, found, _ = log_likelihoods(components, points, near)
    exact = np.stack([evaluate(components, point).value for point in points], axis=1)
    assert 0.0 < np.abs(found - exact)[:, :2].max() < 1e-3
    np.testing.assert_array_equal(found[:, 2], exact[:, 2])


def test_clusters_of_far_groups_are_the_groups(rng):
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    of = np.repeat([0, 1, 2], 7)
    members, means = clustered(centres[of] + 0.1 * rng.normal(size=(21, 2)), 3)
    assert len(means) == 3
    assert all(len(set(members[of == k])) == 1 for k in range(3))
    assert len(set(members.tolist())) == 3


def test_weights_are_halved_where_rounding_made_a_kernel_indefinite():
    K = np.diag([3.0, 1.0, -1e-3])[None]
    components = Components(K, np.ones((3, 1)), np.zeros(1), 4)
    with pytest.raises(np.linalg.LinAlgError):
        evaluate(components, np.array([3000.0]))
    assert evaluate_near(components, np.array([3000.0])).theta == 750.0
    assert evaluate_near(components, np.array([800.0])).theta == 800.0


def test_near_points_are_the_nearest(rng):
    theta, points = rng.uniform(size=(5, 2)), rng.uniform(size=(9, 2))
    near = nearest_points(theta, points, 4)
    a, b = places(theta), places(points)
    distance = ((a[:, None] - b) ** 2).sum(axis=2)
    assert (near.sum(axis=1) == 4).all()
    for t in range(5):
        assert distance[t, near[t]].max() <= distance[t, ~near[t]].min()
    assert nearest_points(theta, points, 9).all()


def test_small_shares_are_left_out():
    found = used_shares(np.array([[0.9995, 0.0005, 0.0], [0.5, 0.25, 0.25]]))
    np.testing.assert_allclose(found, [[1.0, 0.0, 0.0], [0.5, 0.25, 0.25]])
