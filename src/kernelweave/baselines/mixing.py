"""Mixing the outputs of several machines by a linear program with a soft margin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.learners.bias import margin_quantile


@dataclass(frozen=True)
class Contest:
    r"""Margins to be won: row r wants Σ_v A_rv w_v ≥ ρ − ξ_i for its sample i = ``sample[r]``.

    ``A`` is (rows, variables), ``group`` says for each variable which simplex it belongs to, ``cost`` is the
    price of ξ per sample; the costs sum to 1/ν.
    """

    A: Matrix
    sample: AnyArray
    group: AnyArray
    cost: Vector


@dataclass(frozen=True)
class Mixture:
    """Weights on their simplices, and two bounds of −ρ + Σ cost_i ξ_i."""

    weights: Vector
    upper: float
    lower: float


def contest(outputs: AnyArray, index: AnyArray, weight: Vector, nu: float, *, per_class: bool) -> Contest:
    """Return the margins of outputs (M, n, columns): signed for one column, else own class against others.

    With ``per_class`` every class mixes the kernels in its own way.
    """
    M, n, columns = outputs.shape
    cost = weight / (nu * weight.sum())
    if columns == 1:
        A = (np.where(index == 1, 1.0, -1.0) * outputs[:, :, 0]).T
        return Contest(np.ascontiguousarray(A), np.arange(n), np.zeros(M, dtype=int), cost)
    own, others = np.repeat(np.arange(n), columns - 1), np.nonzero(index[:, None] != np.arange(columns))[1]
    right, wrong = outputs[:, own, index[own]].T, outputs[:, own, others].T
    if not per_class:
        return Contest(right - wrong, own, np.zeros(M, dtype=int), cost)
    A = np.zeros((own.size, columns, M))
    rows = np.arange(own.size)
    A[rows, index[own]] = right
    A[rows, others] = -wrong
    return Contest(A.reshape(own.size, -1), own, np.repeat(np.arange(columns), M), cost)


def mix(task: Contest) -> Mixture:
    """Solve min −ρ + Σ cost_i ξ_i over weights on their simplices, by HiGHS, and bound it from both sides."""
    A, n, variables = task.A, task.cost.size, task.A.shape[1]
    rows = np.arange(A.shape[0])
    slack = csr_array((np.ones(rows.size), (rows, task.sample)), shape=(rows.size, n))
    inequality = hstack([csr_array(-A), csr_array(np.ones((rows.size, 1))), -slack], format="csr")
    groups = np.arange(task.group.max() + 1)
    equality = np.zeros((groups.size, variables + 1 + n))
    equality[:, :variables] = task.group == groups[:, None]
    answer = linprog(  # type: ignore[call-overload]  # sparse matrices are legal, the stubs do not know
        np.concatenate([np.zeros(variables), [-1.0], task.cost]),
        A_ub=inequality,
        b_ub=np.zeros(rows.size),
        A_eq=csr_array(equality),
        b_eq=np.ones(groups.size),
        bounds=[(0.0, None)] * variables + [(None, None)] + [(0.0, None)] * n,
        method="highs",
    )
    if answer.x is None:
        raise RuntimeError(f"The linear program of the mixture was not solved: {answer.message}")
    weights = np.maximum(answer.x[:variables], 0.0)
    weights /= np.bincount(task.group, weights)[task.group]
    prices = _feasible(-answer.ineqlin.marginals, task)
    upper = _upper(task, weights)
    return Mixture(weights, upper, min(_lower(task, prices), upper))  # they may cross in the last digit


def _upper(task: Contest, weights: Vector) -> float:
    """Return the objective at these weights, with the best ρ."""
    worst = np.full(task.cost.size, np.inf)
    np.minimum.at(worst, task.sample, task.A @ weights)
    rho = margin_quantile(worst, task.cost, 1.0)
    return float(task.cost @ np.maximum(0.0, rho - worst)) - rho


def _lower(task: Contest, prices: Vector) -> float:
    """Return the dual value: in every simplex the best variable takes all."""
    gains = prices @ task.A
    return -float(sum(gains[task.group == g].max() for g in range(task.group.max() + 1)))


def _feasible(prices: Vector, task: Contest) -> Vector:
    """Return prices ≥ 0 of sum one, no sample's above its cost: the solver's, mended in the last digits."""
    prices = np.maximum(prices, 0.0)
    n = task.cost.size
    paid = np.bincount(task.sample, prices, minlength=n)
    wanted = np.minimum(paid, task.cost)
    missing = 1.0 - wanted.sum()
    if missing > 0.0:
        room = task.cost - wanted
        wanted = wanted + room * (missing / room.sum() if room.sum() > 0.0 else 0.0)
    elif missing < 0.0:
        wanted = wanted / wanted.sum()
    count = np.bincount(task.sample, minlength=n)[task.sample]
    share = np.divide(prices, paid[task.sample], out=1.0 / count, where=paid[task.sample] > 0.0)
    return np.asarray(share * wanted[task.sample])
