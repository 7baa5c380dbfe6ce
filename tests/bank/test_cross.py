"""What is said of many new samples is said a few rows at a time, and is what their matrices say."""

import numpy as np
import pytest

from kernelweave import KernelBank, MKLClassifier
from kernelweave.bank import cross
from kernelweave.bank.fitted import FittedBank
from kernelweave.kernels import Gaussian, Linear, Polynomial

RNG = np.random.default_rng(0)
TRAIN, NEW = RNG.normal(size=(30, 4)), RNG.normal(size=(23, 4))
BANK = KernelBank([Linear(), Gaussian(gamma=0.2), Gaussian(gamma=1.0), Polynomial(degree=2)], scaling=None)
COLUMNS = np.array([3, 7, 8, 20, 29])
ETA = np.array([[0.5, 0.0, 0.0, 1.0], [0.2, 0.7, 0.0, 0.0]])
COEF = RNG.normal(size=(2, COLUMNS.size))


def by_hand():
    """The kernels of new samples against the support, from their definitions."""
    Z = TRAIN[COLUMNS]
    inner, d2 = NEW @ Z.T, ((NEW[:, None] - Z) ** 2).sum(axis=2)
    quadratic = Polynomial(degree=2)(NEW, Z)
    return np.array([inner, np.exp(-0.2 * d2), np.exp(-d2), quadratic])


@pytest.fixture
def seen(monkeypatch):
    """Slices of at most 5 rows; the number of rows and the kernels of every pass."""
    found = []
    monkeypatch.setattr(cross, "ROWS_PER_SLICE", 5)
    for name in ("products", "weighted_products"):
        original = getattr(FittedBank, name)

        def noted(self, X, *args, _original=original, **kwargs):
            found.append(len(X))
            return _original(self, X, *args, **kwargs)

        monkeypatch.setattr(FittedBank, name, noted)
    return found


def test_values_of_slices_are_those_of_the_matrices(seen):
    fitted, K = BANK.fit(TRAIN), by_hand()
    parts = np.einsum("cm,mrj,cj->rcm", ETA, K, COEF)
    found = cross.scores(fitted, NEW, ETA, COEF, COLUMNS, 2)
    np.testing.assert_allclose(found, parts.sum(axis=2), atol=1e-12)
    found = cross.weighted_contributions(fitted, NEW, ETA, COEF, COLUMNS, 2)
    np.testing.assert_allclose(found, parts, atol=1e-12)
    alike = cross.scores(fitted, NEW, ETA[:1], COEF, COLUMNS)
    np.testing.assert_allclose(alike, np.einsum("m,mrj,cj->rc", ETA[0], K, COEF), atol=1e-12)
    own = RNG.normal(size=(2, 4, COLUMNS.size))
    found = cross.contributions(fitted, NEW, own, COLUMNS)
    np.testing.assert_allclose(found, np.einsum("mrj,cmj->rcm", K, own), atol=1e-12)
    assert max(seen) == 5


def test_no_weight_is_no_value(seen):
    fitted = BANK.fit(TRAIN)
    assert not cross.scores(fitted, NEW, 0.0 * ETA, COEF, COLUMNS).any()
    assert cross.weighted_contributions(fitted, NEW, 0.0 * ETA, COEF, COLUMNS).shape == (23, 2, 4)


def test_a_model_predicts_in_slices_with_its_threads(seen):
    y = np.where(TRAIN[:, 0] > 0.0, 1, -1)
    model = MKLClassifier(BANK, n_jobs=2).fit(TRAIN, y)
    one_by_one = np.concatenate([model.decision_function(NEW[k : k + 1]) for k in range(len(NEW))])
    seen.clear()
    np.testing.assert_allclose(model.decision_function(NEW), one_by_one, atol=1e-12)
    assert seen == [5, 5, 5, 5, 3]
