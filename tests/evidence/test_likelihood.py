"""The restricted likelihood against its definition, finite differences, and a search without derivatives."""

import numpy as np
import pytest
from tests.reference.evidence import best_variances, restricted_log_likelihood

from kernelweave.evidence.components import centred_components
from kernelweave.evidence.likelihood import derivatives, evaluate, moment_estimate
from kernelweave.evidence.newton import EvidenceNewton

THETA = np.array([0.5, 0.02, 0.7])


@pytest.fixture
def problem(rng):
    n = 30
    Z = [rng.normal(size=(n, d)) + 3.0 for d in (2, 5, 12)]
    Ks = [z @ z.T for z in Z[:2]] + [np.exp(-0.1 * ((Z[2][:, None] - Z[2]) ** 2).sum(axis=2))]
    y = Z[0] @ [1.0, -1.0] + 0.2 * Z[1] @ rng.normal(size=5) + rng.normal(size=n) + 50.0
    return Ks, np.stack([y, rng.normal(size=n)], axis=1)


def components_of(Ks, Y, weight=None):
    weight = np.ones(len(Y)) if weight is None else weight
    centred = Y - weight @ Y / weight.sum()
    return centred_components(enumerate(Ks), len(Ks), centred, weight)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_value_is_that_of_the_contrasts(problem, rng, weighted):
    Ks, Y = problem
    weight = rng.uniform(0.3, 3.0, len(Y)) if weighted else np.ones(len(Y))
    components, coordinates = components_of(Ks, Y, weight)
    at = evaluate(components, THETA)
    # The coordinates are those of √w_i y_i, up to a constant that the weights alone decide.
    constant = 0.5 * (np.log(weight).sum() - np.log(weight.mean()))
    for t in range(2):
        noise = at.scale[t]
        expected = restricted_log_likelihood(Ks, Y[:, t], noise * THETA * coordinates.factors, noise, weight)
        assert at.value[t] + constant == pytest.approx(expected, abs=1e-8)
        for other in (0.98 * noise, 1.02 * noise):  # the noise is at its best
            worse = restricted_log_likelihood(Ks, Y[:, t], other * THETA * coordinates.factors, other, weight)
            assert worse < expected


def test_samples_of_weight_zero_are_not_there(problem):
    Ks, Y = problem
    weight = np.ones(len(Y))
    weight[:4] = 0.0
    found, _ = components_of(Ks, Y, weight)
    left, _ = components_of([K[4:, 4:] for K in Ks], Y[4:])
    np.testing.assert_allclose(evaluate(found, THETA).value, evaluate(left, THETA).value, rtol=1e-10)
    assert found.dof == left.dof == 25


def test_the_gradient_is_that_of_finite_differences(problem):
    components, _ = components_of(*problem)
    gradient, _ = derivatives(components, evaluate(components, THETA))
    step = 1e-5
    for m in range(3):
        ends = [
            evaluate(components, THETA * np.exp(sign * step * np.eye(3)[m])).value for sign in (1.0, -1.0)
        ]
        np.testing.assert_allclose(gradient[:, m], (ends[0] - ends[1]) / (2.0 * step), atol=1e-6)


def test_the_average_information_is_the_mean_curvature_over_targets(rng):
    """Under the model's own targets the mean of −∂²log p is the mean of the average information."""
    n, theta = 25, np.array([0.8, 0.4])
    Ks = [z @ z.T for z in (rng.normal(size=(n, 3)), rng.normal(size=(n, 4)))]
    components, _ = components_of(Ks, np.zeros((n, 1)))
    root = np.linalg.cholesky(np.eye(n) + np.tensordot(theta, components.K, 1))
    Y = (np.eye(n) - 1.0 / n) @ root @ rng.normal(size=(n, 4000))
    components = components_of(Ks, Y)[0]
    _, information = derivatives(components, evaluate(components, theta))
    step, curvature = 1e-3, np.empty((2, 2))
    for m in range(2):
        moved = [theta * np.exp(sign * step * np.eye(2)[m]) for sign in (1.0, -1.0)]
        ends = [derivatives(components, evaluate(components, one))[0] for one in moved]
        curvature[m] = -((ends[0] - ends[1]) / (2.0 * step)).mean(axis=0)
    np.testing.assert_allclose(information.mean(axis=0), curvature, rtol=0.15, atol=0.05)


def test_moments_recover_the_variances_of_many_targets(rng):
    n, theta = 60, np.array([2.0, 0.5])
    Ks = [z @ z.T for z in (rng.normal(size=(n, 20)), rng.normal(size=(n, 30)))]
    components, _ = components_of(Ks, np.zeros((n, 1)))
    root = np.linalg.cholesky(np.eye(n) + np.tensordot(theta, components.K, 1))
    Y = 3.0 * (np.eye(n) - 1.0 / n) @ root @ rng.normal(size=(n, 3000))
    weights, noise = moment_estimate(components_of(Ks, Y)[0])
    np.testing.assert_allclose(weights.mean(axis=0), 9.0 * theta, rtol=0.1)
    np.testing.assert_allclose(noise.mean(), 9.0, rtol=0.1)


@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_the_search_ends_where_a_search_without_derivatives_does(problem, spread):
    Ks, Y = problem
    components, coordinates = components_of(Ks, Y[:, [0]])
    found = EvidenceNewton(spread=spread, tol=1e-9, max_iter=500).maximise(components)
    variances, noise, value = best_variances(Ks, Y[:, 0], spread)
    x = np.log(found.theta)
    penalised = found.value - 0.5 * np.sum((x - x.mean()) ** 2) / spread**2
    assert penalised == pytest.approx(value, abs=1e-5)
    np.testing.assert_allclose(found.scale * found.theta * coordinates.factors, variances, rtol=0.02)
    assert found.scale == pytest.approx(noise, rel=0.02)
    assert found.slope < 1e-3
    assert found.gain < 1e-9


def test_the_weights_of_noise_vanish_together(problem):
    Ks, Y = problem
    components, _ = components_of(Ks, Y[:, [1]])
    found = EvidenceNewton(max_iter=500).maximise(components)
    noise_alone = evaluate(components, np.zeros(3)).value[0]
    assert found.theta.sum() < 0.05
    assert found.value == pytest.approx(noise_alone, abs=0.1)


def test_without_a_prior_the_likelihood_alone_counts(problem):
    Ks, Y = problem
    components, _ = components_of(Ks, Y[:, [0]])
    free = EvidenceNewton(spread=np.inf, tol=1e-6, max_iter=500).maximise(components)
    held = EvidenceNewton(spread=1.0, tol=1e-6, max_iter=500).maximise(components)
    tight = EvidenceNewton(spread=1e-3, tol=1e-6, max_iter=500).maximise(components)
    assert free.value >= held.value >= tight.value
    np.testing.assert_allclose(tight.theta, tight.theta.mean(), rtol=1e-3)


def test_a_search_that_runs_out_of_steps_says_what_is_left(problem):
    components, _ = components_of(*problem)
    found = EvidenceNewton(tol=1e-12, max_iter=1).maximise(components.of_targets([0]))
    assert found.n_iter == 1
    assert found.gain > 1e-12


def test_a_kernel_that_is_constant_counts_nothing(problem):
    Ks, Y = problem
    components, coordinates = components_of([*Ks, np.full((30, 30), 4.0)], Y)
    assert coordinates.factors[3] == 0.0
    assert not components.K[3].any()
    alone = evaluate(components_of(Ks, Y)[0], THETA).value
    np.testing.assert_allclose(evaluate(components, np.array([*THETA, 5.0])).value, alone)
