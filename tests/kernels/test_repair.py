"""Matrices with negative eigenvalues, clipped, flipped and shifted: eigenvalues say what became of them."""

import numpy as np
import pytest

import kernelweave
from kernelweave import KernelBank, Landmarks, MKLClassifier
from kernelweave.bank import PrecomputedBank
from kernelweave.kernels import FromFunction, Gaussian, Linear, Precomputed, UnitDiagonal, UnitTrace

RNG = np.random.default_rng(7)
Q, _ = np.linalg.qr(RNG.normal(size=(20, 20)))
VALUES = np.concatenate([np.linspace(-2.0, -0.1, 5), np.linspace(0.1, 3.0, 15)])
S = (Q * VALUES) @ Q.T
S = (S + S.T) / 2.0
X = RNG.normal(size=(40, 3))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=40) > 0.0, 1, 0)


def sigmoid(X, Z):
    return np.tanh(0.5 * X @ Z.T - 1.0)


BECOMES = {
    "clip": np.maximum(VALUES, 0.0),
    "flip": np.abs(VALUES),
    "shift": VALUES + 2.0,
}


@pytest.mark.parametrize("how", BECOMES)
def test_eigenvalues_become_what_the_repair_says(how):
    expected = np.sort(BECOMES[how])
    for K in (Precomputed().repaired(how)(S), next(PrecomputedBank(repair=how).fit([S]).grams())):
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(np.linalg.eigvalsh(K), expected, atol=1e-12)
        if how != "shift":  # eigenvectors stay
            np.testing.assert_allclose(K @ Q, Q * BECOMES[how], atol=1e-12)


@pytest.mark.parametrize("how", ["clip", "flip"])
def test_rows_of_training_samples_as_new_ones_are_the_repaired_rows(how):
    fitted = PrecomputedBank(repair=how).fit([S])
    [(_, rows)] = fitted.cross([S[3:7]])
    np.testing.assert_allclose(rows, next(fitted.grams())[3:7], atol=1e-13)
    [(_, some)] = fitted.for_prediction().cross([S[3:7]], columns=np.array([1, 5]))
    np.testing.assert_allclose(some, rows[:, [1, 5]])


def test_new_rows_are_multiplied_by_the_projection_of_the_training_kernel():
    new = RNG.normal(size=(4, 20))
    [(_, clipped)] = PrecomputedBank(repair="clip").fit([S]).cross([new])
    [(_, flipped)] = PrecomputedBank(repair="flip").fit([S]).cross([new])
    [(_, shifted)] = PrecomputedBank(repair="shift").fit([S]).cross([new])
    np.testing.assert_allclose(clipped, new @ (Q * (VALUES > 0.0)) @ Q.T, atol=1e-13)
    np.testing.assert_allclose(flipped, new @ (Q * np.sign(VALUES)) @ Q.T, atol=1e-13)
    np.testing.assert_array_equal(shifted, new)


@pytest.mark.parametrize("how", BECOMES)
def test_a_kernel_is_left_as_it_is(how):
    K = X @ X.T
    np.testing.assert_array_equal(next(PrecomputedBank(repair=how).fit([K]).grams()), K)
    np.testing.assert_array_equal(Precomputed().repaired(how)(K), K)
    np.testing.assert_array_equal(Gaussian(gamma=1.0).repaired(how)(X), Gaussian(gamma=1.0)(X))


def test_without_a_repair_the_error_names_the_choice():
    for use in (lambda: PrecomputedBank().fit([S]), lambda: FromFunction(sigmoid)(X)):
        with pytest.raises(
            ValueError, match=r"indefinite.*PrecomputedBank\(repair='clip'\).*'flip'.*'shift'"
        ):
            use()
    with pytest.raises(
        ValueError, match="PrecomputedBank cannot use 'mend' as repair; it has to be one of clip"
    ):
        PrecomputedBank(repair="mend").fit([S])
    with pytest.raises(ValueError, match="Kernel 0 is not symmetric"):
        PrecomputedBank(repair="clip").fit([np.triu(S)])


@pytest.mark.parametrize("how", BECOMES)
def test_models_of_repaired_matrices_and_functions_agree(how, tmp_path):
    K = sigmoid(X, X)
    given = MKLClassifier(PrecomputedBank(repair=how), tol=1e-6).fit([K[:30, :30]], Y[:30])
    own = MKLClassifier(KernelBank([FromFunction(sigmoid).repaired(how)]), tol=1e-6).fit(X[:30], Y[:30])
    a, b = given.certificate_, own.certificate_
    assert max(a.lower, b.lower) <= min(a.upper, b.upper)
    # Between the same distinct samples both say the same.
    np.testing.assert_allclose(
        given.decision_function([K[30:, :30]]), own.decision_function(X[30:]), atol=1e-3
    )
    kernelweave.save(given, tmp_path / "model.kw")
    again = kernelweave.load(tmp_path / "model.kw")
    np.testing.assert_array_equal(
        again.decision_function([K[30:, :30]]), given.decision_function([K[30:, :30]])
    )


def test_a_scaling_learns_on_the_repaired_matrix():
    fitted = PrecomputedBank(scaling=UnitTrace(), repair="flip").fit([S])
    assert np.trace(next(fitted.grams())) == pytest.approx(1.0)
    bank = KernelBank([FromFunction(sigmoid).repaired()], scaling=UnitDiagonal())
    with pytest.raises(ValueError, match="does not show"):
        next(bank.fit(X).grams())


def test_a_repaired_kernel_knows_no_values_between_new_samples():
    fitted = KernelBank([FromFunction(sigmoid).repaired("clip") + Linear()]).fit(X[:30])
    with pytest.raises(ValueError, match=r"clip\(sigmoid\) is known against the training samples only"):
        next(fitted.between(X[30:], X[30:]))


def test_landmarks_keep_the_samples_that_a_repair_was_learnt_on():
    bank = KernelBank([FromFunction(sigmoid).repaired("clip")])
    fitted = bank.fit(X)
    features = Landmarks(40).fit(fitted, X, np.random.default_rng(0))
    Phi = features.transform(X)
    np.testing.assert_allclose(Phi @ Phi.T, next(fitted.grams()), atol=1e-6)
    some = Landmarks(10).fit(fitted, X, np.random.default_rng(0))
    raw = some.raw(X, [0])[0]
    assert raw.shape == (40, 10)
    assert abs(raw[:, :, None] - next(fitted.grams())[:, None, :]).min(axis=2).max() < 1e-9
