"""The cutting plane: solve for the weights of the candidates so far, add the most violated one, repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.geometry import GroupBox
from kernelweave.learners import UnbiasedSquaredHinge
from kernelweave.solvers import Certificate, Newton, Progress, Result, Solver
from kernelweave.weak_labels.oracle import Found, MultiStart, Oracle
from kernelweave.weak_labels.protocol import Ambiguity, Candidate
from kernelweave.weak_labels.stack import InputOutputGrams

# Share of the old weights a new round starts from; the rest goes to the newcomers, which zeros would delay.
KEEP = 0.8


@dataclass(frozen=True)
class Round:
    """One round: the certificate of its convex problem, and how far the new candidates exceed the old."""

    n_candidates: int
    certificate: Certificate
    violation: float
    n_machines: int


@dataclass(frozen=True)
class Outcome:
    """What was learnt: candidates and weights per round and kernel, coefficients, and why it ended.

    ``stopped`` is "no violated candidate", "repeated candidate", "round cap" or "interrupted";
    ``coef`` are the coefficients of the points, one row per kernel: f(x) = Σ_m coef_m · k_m(x).
    """

    candidates: tuple[tuple[Candidate, ...], ...] = field(repr=False)
    weights: Matrix
    alpha: Vector = field(repr=False)
    coef: Matrix = field(repr=False)
    result: Result = field(repr=False)
    rounds: tuple[Round, ...]
    stopped: str


def learn(
    grams: Sequence[Matrix],
    ambiguity: Ambiguity,
    prices: Vector,
    first: Sequence[Candidate],
    *,
    theta: float | None = None,
    fixed_theta: float | None = None,
    max_rounds: int = 8,
    violation_tol: float = 1e-2,
    tol: float = 1e-3,
    max_iter: int | None = None,
    suggestions: Sequence[Vector] = (),
    oracle: Oracle | None = None,
    solver: Solver | None = None,
    report: Callable[[Round], None] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    r"""Learn which candidates to believe, and a classifier with them.

    Parameters
    ----------
    grams : M kernel matrices of the points.
    ambiguity : the set of candidates.
    prices : C_i per sample.
    first : the first candidate, one per kernel.
    theta : the cap on a candidate's weight is theta / T in a round with T candidates; None is none.
    fixed_theta : the same cap in every round, instead.
    max_rounds, violation_tol : when to stop; ``tol`` is the relative gap of every round's convex problem.
    suggestions : scores of the points from which every search also starts.

    Notes
    -----
    [Xu14, Algorithm 3]: group t of the weights holds, for each kernel, the candidate round t found for it.
    With an exact oracle the hard margin solves the problem over all groups of candidates; θ = c/T changes
    the problem from round to round, so its objective may rise.
    Differs from the paper: the C form, second-order steps, many starts, and a stated reason for stopping.

    """
    oracle = MultiStart() if oracle is None else oracle
    chosen = Newton(tol=tol, max_iter=max_iter) if solver is None else solver
    learner, y = UnbiasedSquaredHinge(), np.ones(ambiguity.n_samples)
    rows: list[tuple[Candidate, ...]] = [tuple(first)]
    seen = {_key(ambiguity, rows[0])}
    rounds: list[Round] = []
    eta: Vector | None = None
    alpha: Vector | None = None
    stopped = "round cap"
    while True:
        stack = InputOutputGrams(grams, ambiguity, rows)
        geometry = _geometry(len(grams), len(rows), theta, fixed_theta)
        start = None if eta is None else _continued(geometry, eta, len(grams))
        result = chosen.solve(
            stack, y, learner, geometry, weight=prices, start=start, warm=alpha, progress=progress
        )
        eta, alpha = result.eta, result.machine.coef
        coef = stack.point_coefficients(eta, alpha)
        if result.stopped == "interrupted":
            stopped = "interrupted"
            break
        scores = np.sum([K @ c for K, c in zip(grams, coef, strict=True)], axis=0)
        h = np.sqrt(np.sum(stack.energies(alpha).reshape(len(rows), -1) ** 2, axis=1))
        try:
            found = _search(oracle, grams, alpha, ambiguity, rows, [scores, *suggestions])
        except KeyboardInterrupt:  # what the solver has found so far is worth keeping
            stopped = "interrupted"
            break
        violation = _violation(found, h, eta, len(grams))
        rounds.append(Round(len(rows), result.certificate, violation, result.n_iter))
        if report is not None:
            report(rounds[-1])
        newcomer = tuple(ambiguity.oriented(f.candidate, scores) for f in found)
        if _key(ambiguity, newcomer) in seen:
            stopped = "repeated candidate"
            break
        if violation <= violation_tol:
            stopped = "no violated candidate"
            break
        if len(rows) >= max_rounds:
            break
        seen.add(_key(ambiguity, newcomer))
        rows.append(newcomer)
    weights = eta.reshape(len(rows), len(grams))
    return Outcome(tuple(rows), weights, alpha, coef, result, tuple(rounds), stopped)


def _geometry(n_grams: int, n_rounds: int, theta: float | None, fixed: float | None) -> GroupBox:
    cap = fixed if fixed is not None else 1.0 if theta is None else theta / n_rounds
    return GroupBox(groups=np.repeat(np.arange(n_rounds), n_grams).tolist(), theta=cap)


def _continued(geometry: GroupBox, eta: Vector, n_grams: int) -> Vector:
    """Return weights to start the next round from: the old ones, and a share for the newcomers."""
    even = np.full(n_grams, (1.0 - KEEP) / np.sqrt(n_grams))
    return geometry.project(np.concatenate([KEEP * eta, even]))


def _search(
    oracle: Oracle,
    grams: Sequence[Matrix],
    alpha: Vector,
    ambiguity: Ambiguity,
    rows: list[tuple[Candidate, ...]],
    starts: list[Vector],
) -> list[Found]:
    """Return the most violated candidate for every kernel."""
    found = []
    for m, K in enumerate(grams):
        old = [row[m] for row in rows]
        C = np.column_stack([ambiguity.spread(h, alpha) for h in old])
        best = old[int(np.einsum("ij,ij->j", C, K @ C).argmax())]
        found.append(oracle.find(K, alpha, ambiguity, [*starts, best.astype(np.float64)]))
    return found


def _violation(found: list[Found], h: Vector, eta: Vector, n_grams: int) -> float:
    """Return how far the newcomers' group norm exceeds that of the least group in use, as a share of it.

    While the caps leave weight unspent every newcomer of positive norm improves the objective.
    """
    reached = 0.5 * float(np.linalg.norm([f.value for f in found]))
    lengths = np.sqrt(np.sum(eta.reshape(-1, n_grams) ** 2, axis=1))
    if lengths.sum() < 1.0 - 1e-6:
        return np.inf if reached > 0.0 else 0.0
    # A group at the cap may be better than the rest: what a newcomer competes with is the least one in use.
    used = h[lengths > 1e-6 * lengths.max()]
    return reached / float(used.min()) - 1.0 if used.min() > 0.0 else np.inf


def _key(ambiguity: Ambiguity, row: Sequence[Candidate]) -> bytes:
    return b"|".join(ambiguity.key(h) for h in row)
