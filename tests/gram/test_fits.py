"""However kernels are held, what a fit promises is about the kernels as they are."""

from dataclasses import replace

import numpy as np
import pytest
from tests.reference.conic import assert_encloses, conic_optimum

from kernelweave import KernelBank, MKLClassifier, MKLRegressor
from kernelweave.bank import Entry
from kernelweave.estimators import model as model_module
from kernelweave.estimators import training as training_module
from kernelweave.geometry import BoxSimplex, LpBall, Simplex
from kernelweave.gram import StoragePolicy, build_gram_stack
from kernelweave.gram.memory import unpacked_bytes
from kernelweave.kernels import Centering, Gaussian, Laplacian, Linear, Polynomial, UnitDiagonal, UnitMean
from kernelweave.learners import Hinge
from kernelweave.solvers import ColumnGeneration

RNG = np.random.default_rng(5)
N = 60
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.5 * RNG.normal(size=N) > 0, 1.0, -1.0)
SOME = [Gaussian(width=0.5), Gaussian(width=40.0), Polynomial(degree=2)]
BANK = KernelBank(
    [
        *[Entry(kernel, columns=[0]) for kernel in SOME],
        *[Entry(kernel) for kernel in (Laplacian(), Gaussian(width=0.3), Linear())],
        Entry(Polynomial(degree=3), columns=[2], scaling=(UnitDiagonal(), Centering())),
    ],
    scaling=UnitMean(),
)


@pytest.fixture
def rounded(monkeypatch):
    """Round kernels of few samples as if they were many."""

    def dtype(self, n_samples, n_kernels):
        return self.dtype if self.dtype != "auto" else "float32" if self.tol >= 1e-4 else "float64"

    monkeypatch.setattr(StoragePolicy, "stored_dtype", dtype)


HOLDERS = {
    "packed": {},
    "combined": {"stored_up_to": 0, "streams_from": None},
    "streamed": {"stored_up_to": 0, "streams_from": 0},
}


@pytest.fixture(params=HOLDERS)
def holder(request, rounded, monkeypatch):
    """Hold kernels of few samples as if they were many."""

    def hold(kernels, policy):
        return build_gram_stack(kernels, replace(policy, **HOLDERS[request.param]))

    for module in (model_module, training_module):
        monkeypatch.setattr(module, "build_gram_stack", hold)
    return request.param


CASES = [(Simplex(), ("simplex",)), (LpBall(2.0), ("lp", 2.0)), (BoxSimplex(theta=0.3), ("box", 0.3))]


@pytest.mark.parametrize(("geometry", "same"), CASES)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_the_certificate_is_that_of_the_kernels_themselves(holder, geometry, same, C):
    model = MKLClassifier(BANK, learner=Hinge(C), geometry=geometry, tol=1e-3, n_jobs=2).fit(X, Y)
    optimum = conic_optimum(list(BANK.fit(X).grams()), Y, ("hinge", C), same).value
    assert_encloses(model.certificate_, optimum)
    assert model.duality_gap_ <= 1e-3
    assert ("packed" if holder == "packed" else "streamed") in model.storage_.how


@pytest.mark.parametrize("kind", ["two classes", "three classes", "weights", "regression", "targets"])
def test_bounds_agree_with_those_of_stored_float64(holder, monkeypatch, kind):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(150, 4))
    Z[:, 1], Z[:, 2], Z[:, 3] = rng.standard_t(2, size=150), 2.5, Z[:, 3] + 300.0
    target = Z[:, 0] + 0.3 * Z[:, 1] + 0.7 * rng.normal(size=150)
    weight = rng.uniform(0.2, 3.0, size=150) if kind == "weights" else None
    bank = KernelBank.per_feature(widths=(0.5, 4.0), degrees=(2,))
    if kind in ("regression", "targets"):
        y = target if kind == "regression" else np.column_stack([target, Z[:, 0] ** 2])
        model = MKLRegressor(bank, geometry=LpBall(2.0), n_jobs=2)
    else:
        y = np.digitize(target, [0.5] if kind != "three classes" else [0.0, 1.0])
        model = MKLClassifier(bank, learner=Hinge(10.0), geometry=LpBall(2.0), n_jobs=2)
    found = model.set_params(tol=1e-3).fit(Z, y, sample_weight=weight).certificate_
    monkeypatch.undo()
    fine = model.set_params(tol=1e-6).fit(Z, y, sample_weight=weight)
    assert "packed in float64" in fine.storage_.how
    for one, other in zip(np.atleast_1d(found), np.atleast_1d(fine.certificate_), strict=True):
        assert one.lower <= other.upper
        assert other.lower <= one.upper
        assert one.relative_gap <= 1e-3


def test_a_column_of_zeros_does_no_harm(holder):
    table = X.copy()
    table[:, 1] = 0.0
    bank = KernelBank([Entry(Linear(), columns=[j]) for j in range(3)])
    assert MKLClassifier(bank, tol=1e-3).fit(table, Y).duality_gap_ <= 1e-3


def test_column_generation_computes_kernels_in_every_pass(rounded):
    model = MKLClassifier(BANK, solver=ColumnGeneration(), tol=1e-3).fit(X, Y)
    assert model.duality_gap_ <= 1e-3
    assert "streamed" in model.storage_.how


def test_kernels_too_small_for_float32_are_solved_in_float64(rounded):
    Ks = [K * 1e-40 for K in BANK.fit(X).grams()]
    model = MKLClassifier("precomputed", learner=Hinge(1e40), tol=1e-3).fit(Ks, Y)
    assert model.storage_.error == 0.0
    assert model.duality_gap_ <= 1e-3


def test_what_float32_found_is_kept_when_float64_does_not_fit(rounded):
    n_columns = sum(source.n_columns for source in BANK.fit(X).sources())
    limit, policy = unpacked_bytes(N, 7, 4) + 8 * N * n_columns, StoragePolicy(centre=True, tol=1e-3)
    assert build_gram_stack(BANK.fit(X), replace(policy, memory_limit=limit)).is_rounded
    with pytest.raises(MemoryError):
        build_gram_stack(BANK.fit(X), replace(policy, memory_limit=limit, dtype="float64"))
    model = MKLClassifier(BANK, tol=1e-3, memory_limit=limit).fit(X, Y)
    assert model.storage_.error > 0.0
