"""Machines on one kernel at a time, judged on samples they have not seen."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.estimators.splits import Fold
from kernelweave.learners import Learner, Machine


def decisions(machine: Machine, K: Matrix) -> Matrix:
    """Return the decision values (rows, columns) for the kernel of new rows with the machine's samples."""
    values = (K @ machine.coef + machine.intercept) / np.where(machine.margin > 0.0, machine.margin, 1.0)
    return np.asarray(values.reshape(K.shape[0], -1))


def held_out(K: Matrix, learner: Learner, Y: AnyArray, weight: Vector, fold: Fold, tol: float) -> Matrix:
    """Return decision values (test samples, columns) on one kernel, by a machine of the training samples."""
    train, test = fold
    inside = np.ascontiguousarray(K[np.ix_(train, train)])
    machine = learner.solve(inside, Y[train], weight[train], tol=tol)
    return decisions(machine, K[np.ix_(test, train)])


def accuracy(values: Matrix, index: AnyArray, weight: Vector) -> float:
    """Return the weighted share of samples whose class wins: by sign in one column, else the largest."""
    winners = (values[:, 0] > 0.0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
    return float(weight @ (winners == index) / weight.sum())


def accuracy_weights(accuracies: Vector, delta: float) -> Vector:
    """Return (π_m − δ min π) / Σ_h (π_h − δ min π); even weights where all differences vanish."""
    above = accuracies - delta * accuracies.min()
    total = float(above.sum())
    return above / total if total > 0.0 else np.full(above.size, 1.0 / above.size)
