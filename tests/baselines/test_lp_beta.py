"""LP-beta and its linear program, against a conic solver and scikit-learn."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from tests.reference.problems import random_problem

from kernelweave import LPBetaClassifier
from kernelweave.baselines.lp_beta import MarginProgram


def random_outputs(rng, classes, n=60, M=5):
    index = rng.permutation(np.arange(n) % classes)
    signs = np.where(index[:, None] == np.arange(classes), 1.0, -1.0)
    signs = signs[:, 1:2] if classes == 2 else signs
    skill = rng.uniform(0.0, 1.0, (M, 1, 1))
    return skill * signs + rng.normal(size=(M, n, signs.shape[1])), index


def mixed(*args, **how):
    return MarginProgram.of_outputs(*args, **how).solve()


def conic_optimum(outputs, index, cost, per_class):
    """min -rho + cost'xi with one constraint per sample and rival, as the paper prints it."""
    M, n, columns = outputs.shape
    blocks = columns if per_class else 1
    rows, samples = [], []
    for i in range(n):
        for c in {1 - index[i]} if columns == 1 else set(range(columns)) - {index[i]}:
            row = np.zeros((blocks, M))
            if columns == 1:
                row[0] = (1.0 if index[i] == 1 else -1.0) * outputs[:, i, 0]
            else:
                row[index[i] if per_class else 0] += outputs[:, i, index[i]]
                row[c if per_class else 0] -= outputs[:, i, c]
            rows.append(row.ravel())
            samples.append(i)
    B, rho, xi = cp.Variable(blocks * M, nonneg=True), cp.Variable(), cp.Variable(n, nonneg=True)
    sums = [cp.sum(B[k * M : (k + 1) * M]) == 1 for k in range(blocks)]
    problem = cp.Problem(cp.Minimize(-rho + cost @ xi), [np.array(rows) @ B + xi[samples] >= rho, *sums])
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.parametrize("nu", [0.05, 0.5, 1.0])
@pytest.mark.parametrize(("classes", "per_class"), [(2, False), (3, False), (3, True), (4, True)])
def test_the_bounds_enclose_the_conic_optimum_and_meet(classes, per_class, nu, rng):
    outputs, index = random_outputs(rng, classes)
    weight = rng.uniform(0.5, 1.5, index.size)
    mixture = mixed(outputs, index, weight, nu, per_class=per_class)
    optimum = conic_optimum(outputs, index, weight / (nu * weight.sum()), per_class)
    assert mixture.certificate.lower <= optimum + 1e-6
    assert optimum <= mixture.certificate.upper + 1e-6
    assert mixture.certificate.upper - mixture.certificate.lower <= 1e-9
    assert mixture.weights.min() >= 0.0
    sums = mixture.weights.reshape(-1, len(outputs)).sum(axis=1)
    np.testing.assert_allclose(sums, 1.0, atol=1e-12)


def test_nu_one_takes_the_best_mean_margin(rng):
    outputs, index = random_outputs(rng, 2)
    mixture = mixed(outputs, index, np.ones(60), 1.0, per_class=False)
    means = (np.where(index == 1, 1.0, -1.0) * outputs[:, :, 0]).mean(axis=1)
    assert mixture.certificate.upper == pytest.approx(-means.max())
    assert mixture.weights[means.argmax()] == pytest.approx(1.0)


def test_samples_of_weight_zero_are_absent(rng):
    outputs, index = random_outputs(rng, 3)
    keep = np.arange(60) >= 12
    with_zero = mixed(outputs, index, keep.astype(float), 0.3, per_class=False)
    without = mixed(outputs[:, keep], index[keep], np.ones(48), 0.3, per_class=False)
    assert with_zero.certificate.upper == pytest.approx(without.certificate.upper)
    assert with_zero.certificate.lower == pytest.approx(without.certificate.lower)


def test_at_most_a_share_nu_lies_below_the_margin(rng):
    outputs, index = random_outputs(rng, 2, n=200)
    nu = 0.2
    mixture = mixed(outputs, index, np.ones(200), nu, per_class=False)
    margins = np.where(index == 1, 1.0, -1.0) * (mixture.weights @ outputs[:, :, 0])
    rho = np.sort(margins)[int(nu * 200)]  # the best margin is a quantile of the margins
    assert (margins < rho - 1e-9).mean() <= nu
    below = np.maximum(0.0, rho - margins).sum() / (nu * 200)
    assert -rho + below == pytest.approx(mixture.certificate.upper, abs=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_lp_beta_mixes_classifiers_by_their_outputs_for_held_out_samples(classes):
    Ks, y = random_problem(10, n=60, M=4)
    y = y if classes == 2 else np.argsort(np.argsort(Ks[0][0] + 0.2 * y)) * 3 // 60
    columns = [y] if classes == 2 else [np.where(y == c, 1.0, -1.0) for c in range(3)]
    svc = SVC(kernel="precomputed", tol=1e-6)
    held, trained = np.empty((2, 4, 60, len(columns)))
    for m, K in enumerate(Ks):
        for c, column in enumerate(columns):
            for train, test in StratifiedKFold(3).split(K, y):
                inside = svc.fit(K[np.ix_(train, train)], column[train])
                held[m, test, c] = inside.decision_function(K[np.ix_(test, train)])
            trained[m, :, c] = svc.fit(K, column).decision_function(K)
    beta, rho, xi = cp.Variable(4, nonneg=True), cp.Variable(), cp.Variable(60, nonneg=True)
    constraints = [cp.sum(beta) == 1]
    if classes == 2:
        constraints.append(cp.multiply(y, held[:, :, 0].T @ beta) + xi >= rho)
    else:
        own = held[:, np.arange(60), y]
        for c in range(3):
            rivals = np.flatnonzero(y != c)
            constraints.append((own - held[:, :, c])[:, rivals].T @ beta + xi[rivals] >= rho)
    value = cp.Problem(cp.Minimize(-rho + cp.sum(xi) / (0.4 * 60)), constraints).solve(solver=cp.CLARABEL)
    fitted = LPBetaClassifier("precomputed", nu=0.4, cv=3, tol=1e-8).fit(Ks, y)
    assert fitted.objective_ == pytest.approx(value, abs=1e-4)
    np.testing.assert_allclose(fitted.kernel_weights_, beta.value, atol=1e-3)
    mixed = np.einsum("m,mic->ic", fitted.kernel_weights_, trained)
    expected = mixed[:, 0] if classes == 2 else mixed
    np.testing.assert_allclose(fitted.decision_function(Ks), expected, atol=1e-3)
    assert fitted.n_iter_ == 4 * (3 + 1)


def test_the_program_of_the_classifier_has_the_weights_of_the_samples(monkeypatch):
    programs, solve = [], MarginProgram.solve
    monkeypatch.setattr(MarginProgram, "solve", lambda self: programs.append(self) or solve(self))
    Ks, y = random_problem(10, n=60, M=4)
    weight = np.random.default_rng(0).integers(1, 5, 60)
    LPBetaClassifier("precomputed", nu=0.4, cv=3).fit(Ks, y, sample_weight=weight)
    np.testing.assert_allclose(programs[0].cost, weight / (0.4 * weight.sum()))


def test_the_memory_limit_is_respected():
    Ks, y = random_problem(10, n=60, M=2)
    with pytest.raises(MemoryError, match=r"2 kernels of 60 samples.* need .* but 1 KB may be used"):
        LPBetaClassifier("precomputed", memory_limit=1000.0).fit(Ks, y)
