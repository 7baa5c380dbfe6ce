"""Multi-instance baselines with many kernels: labels or instances guessed, a machine trained, repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.geometry import Geometry
from kernelweave.gram import DenseGrams
from kernelweave.learners import Learner
from kernelweave.solvers import Newton, Result, Solver

Members = Sequence[Indices]
# Share of the rows up to which they are taken out of a matrix before it is multiplied.
FEW = 0.1


@dataclass(frozen=True)
class BagFit:
    """f(x) = Σ_m coef_m · k_m(x) + intercept on instances: one row of coefficients per kernel."""

    coef: Matrix
    intercept: float
    result: Result
    n_rounds: int = 1
    n_machines: int = 0

    def values(self, grams: Sequence[Matrix], rows: Indices) -> Vector:
        """Return the decision values of these instances."""
        # Taking rows out of a matrix costs far more than reading it all.
        few = rows.size < FEW * len(grams[0])
        parts = [
            K[rows] @ c if few else (K @ c)[rows] for K, c in zip(grams, self.coef, strict=True) if c.any()
        ]
        return np.asarray(
            np.sum(parts, axis=0) + self.intercept if parts else np.full(rows.size, self.intercept)
        )


@dataclass(frozen=True)
class Trainer:
    """The machine that all baselines train: any learner on any set of kernel weights."""

    learner: Learner
    geometry: Geometry
    solver: Solver = field(default_factory=lambda: Newton(tol=1e-3))

    def hold(self, grams: Sequence[Matrix], A: sparse.csr_array) -> DenseGrams:
        """Return the kernels of samples that are mixtures of instances, one row of A each."""
        return DenseGrams([_between(A, K) for K in grams], centre=self.learner.has_bias)

    def train(
        self, stack: DenseGrams, A: sparse.csr_array, y: Vector, weight: Vector, near: BagFit | None = None
    ) -> BagFit:
        """Train on the kernels held of these mixtures, from the weights and coefficients of a fit nearby."""
        start, warm = (None, None) if near is None else (near.result.eta, near.result.machine.coef)
        result = self.solver.solve(
            stack, y, self.learner, self.geometry, weight=weight, start=start, warm=warm
        )
        v, margin = result.machine.coef, float(result.machine.margin)
        coef = result.eta[:, None] * np.asarray(A.T @ v) / margin
        intercept = float(result.machine.intercept - stack.offset(result.eta, v)) / margin
        return BagFit(coef, intercept, result, n_machines=result.n_iter)

    def train_once(self, grams: Sequence[Matrix], A: sparse.csr_array, y: Vector, weight: Vector) -> BagFit:
        """Train on mixtures of instances from nothing."""
        return self.train(self.hold(grams, A), A, y, weight)


def _between(A: sparse.csr_array, K: Matrix) -> Matrix:
    """Return A K A', the kernel between mixtures of instances."""
    if A.nnz == A.shape[0] and (A.data == 1.0).all() and (np.diff(A.indptr) == 1).all():  # single instances
        every = np.array_equal(A.indices, np.arange(len(K)))
        return K if every else K.take(A.indices, axis=0).take(A.indices, axis=1)
    return np.asarray(A @ np.asarray(A @ K).T)


def single_instance(
    trainer: Trainer, grams: Sequence[Matrix], members: Members, signs: Vector, weight: Vector
) -> BagFit:
    """Give every instance the label of its bag (SIL)."""
    owner = np.repeat(np.arange(len(members)), [len(m) for m in members])
    return trainer.train_once(grams, picks(np.concatenate(members), grams), signs[owner], weight[owner])


def set_kernel(
    trainer: Trainer, grams: Sequence[Matrix], members: Members, signs: Vector, weight: Vector
) -> BagFit:
    """Represent every bag by the mean of its instances: the set kernel divided by both sizes."""
    return trainer.train_once(grams, means(members, grams), signs, weight)


def guessed_labels(
    trainer: Trainer,
    grams: Sequence[Matrix],
    members: Members,
    signs: Vector,
    weight: Vector,
    max_rounds: int = 20,
) -> BagFit:
    """Relabel the instances of positive bags by the machine, at least one positive each (mi-SVM)."""
    rows = np.concatenate(members)
    owner = np.repeat(np.arange(len(members)), [len(m) for m in members])
    A, y, seen = picks(rows, grams), signs[owner].copy(), set()
    machines, n_rounds = 0, 0
    places = [np.flatnonzero(owner == bag) for bag in range(len(members))]
    stack = trainer.hold(grams, A)
    fit: BagFit | None = None
    for _ in range(max_rounds):
        fit = trainer.train(stack, A, y, weight[owner], near=fit)
        machines, n_rounds = machines + fit.n_machines, n_rounds + 1
        values = fit.values(grams, rows)
        y_new = np.where((signs[owner] > 0) & (values > 0.0), 1.0, -1.0)
        for bag in np.flatnonzero(signs > 0):
            y_new[places[bag][values[places[bag]].argmax()]] = 1.0
        if np.array_equal(y_new, y) or y_new.tobytes() in seen:
            break
        seen.add(y.tobytes())
        y = y_new
    assert fit is not None
    return BagFit(fit.coef, fit.intercept, fit.result, n_rounds, machines)


def guessed_witnesses(
    trainer: Trainer,
    grams: Sequence[Matrix],
    members: Members,
    signs: Vector,
    weight: Vector,
    max_rounds: int = 20,
) -> BagFit:
    """Represent a positive bag by its highest instance, starting from its mean (MI-SVM)."""
    positive, others = np.flatnonzero(signs > 0).tolist(), np.flatnonzero(signs < 0).tolist()
    negative = np.concatenate([members[bag] for bag in others])
    owner = np.repeat(others, [len(members[bag]) for bag in others])
    y = np.concatenate([np.ones(len(positive)), -np.ones(negative.size)])
    C = np.concatenate([weight[positive], weight[owner]])
    first = means([members[bag] for bag in positive], grams)
    chosen: AnyArray | None = None
    fit: BagFit | None = None
    seen: set[bytes] = set()
    machines, n_rounds = 0, 0
    for _ in range(max_rounds):
        top = first if chosen is None else picks(chosen, grams)
        A = sparse.vstack([top, picks(negative, grams)], format="csr")
        fit = trainer.train(trainer.hold(grams, A), A, y, C, near=fit)
        machines, n_rounds = machines + fit.n_machines, n_rounds + 1
        best = np.array([members[bag][fit.values(grams, members[bag]).argmax()] for bag in positive])
        if best.tobytes() in seen:
            break
        seen.add(best.tobytes())
        chosen = best
    assert fit is not None
    return BagFit(fit.coef, fit.intercept, fit.result, n_rounds, machines)


def picks(rows: Indices, grams: Sequence[Matrix]) -> sparse.csr_array:
    """Return the rows that take single instances."""
    n = len(rows)
    return sparse.csr_array((np.ones(n), (np.arange(n), rows)), shape=(n, len(grams[0])))


def means(members: Members, grams: Sequence[Matrix]) -> sparse.csr_array:
    """Return the rows that take the mean of each bag."""
    sizes = np.array([len(m) for m in members])
    owner = np.repeat(np.arange(len(members)), sizes)
    data = (1.0 / sizes)[owner]
    return sparse.csr_array((data, (owner, np.concatenate(members))), shape=(len(members), len(grams[0])))
