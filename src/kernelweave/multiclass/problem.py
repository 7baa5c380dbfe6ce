"""The multiclass p-norm problem, its dual, the bounds that coefficients prove, and what its solvers share."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelweave._part import Part
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.multiclass.checkpoint import Checkpoint
from kernelweave.multiclass.rows import KernelRows
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.problem import Progress, Record


@dataclass(frozen=True)
class PNormProblem:
    r"""The primal and the dual of multiclass p-norm multiple kernel learning [Orabona10, Eq. (9)].

    .. math::
       P(w) &= \tfrac\lambda2 \|\bar w\|_{2,p}^2 + \tfrac1N \sum_i \mathrm{weight}_i\, \ell(w, x_i, y_i) \\
       D(A) &= \tfrac1N \sum_i A_{i y_i} - \tfrac{u(A)}{2 \lambda N^2}, \qquad
       u = \Bigl(\sum_j s_j^{q/2}\Bigr)^{2/q}, \quad s_j = \mathrm{tr}(A' K_j A)

    over the A (N × classes) whose rows sum to zero and have A_ic ≤ weight_i [c = y_i]. Coefficients A stand
    for w^j = σ_j θ^j / (λN) with θ^j = Σ_i A_i ⊗ φ^j(x_i) and the kernel weights σ_j = (s_j/u)^{q/2−1}.

    Parameters
    ----------
    rows : the kernels.
    y : classes of the samples, from 0 on.
    n_classes : number of classes.
    lam : λ.
    p : norm over the kernels, 1 < p ≤ 2.
    weight : factor on the loss of each sample.

    Notes
    -----
    ℓ is the multiclass hinge of [Orabona10, Eq. (5)], without intercept.
    Differs from the paper: the weights of the samples, and the dual, which it does not state.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.multiclass import DualAscent, PNormProblem
    >>> from kernelweave.multiclass.rows import StoredRows
    >>> y = np.array([0, 0, 1, 1])
    >>> problem = PNormProblem(StoredRows(np.eye(4)[None]), y, 2, lam=0.25, p=1.5, weight=np.ones(4))
    >>> result = DualAscent(tol=1e-6).solve(problem, np.random.default_rng(0))
    >>> round(result.certificate.upper, 4)
    0.25

    """

    rows: KernelRows = field(repr=False)
    y: AnyArray = field(repr=False)
    n_classes: int
    lam: float
    p: float
    weight: Vector = field(repr=False)

    @property
    def n_samples(self) -> int:
        return int(self.y.size)

    @property
    def q(self) -> float:
        """The exponent of the dual norm, 1/p + 1/q = 1."""
        return self.p / (self.p - 1.0)

    @property
    def scale(self) -> float:
        """λN, which turns dual variables into coefficients."""
        return self.lam * self.n_samples

    def products(self, A: Matrix) -> AnyArray:
        """Return G_j = K_j A as (kernels, classes, N), from the samples with coefficients alone."""
        support = np.flatnonzero(A.any(axis=1))
        G = self.rows.products(np.arange(self.n_samples), support, A[support])
        return np.ascontiguousarray(G.transpose(0, 2, 1))


def dual_norm_and_weights(s: Vector, q: float) -> tuple[float, Vector]:
    """Return u = (Σ s_j^{q/2})^{2/q} and the kernel weights σ_j = (s_j/u)^{q/2−1}, which are its gradient.

    Powers are taken of shares of the largest s_j: near p = 1 the exponent q is a hundred and more.
    """
    largest = float(s.max(initial=0.0))
    if largest <= 0.0:
        return 0.0, np.zeros_like(s)
    shares = np.maximum(s, 0.0) / largest
    powers = np.ones_like(s) if q == 2.0 else shares ** (0.5 * q - 1.0)
    total = float(powers @ shares)
    factor = total ** (2.0 / q - 1.0)
    return largest * factor * total, factor * powers


@dataclass(frozen=True)
class PNormEvaluation:
    """What coefficients A prove: P of the best multiple τ w(A) from above, and D of the best tA from below.

    ``eta`` are the kernel weights σ, ``norms`` the ‖τw^j‖, and ``sample_gaps`` the nonnegative terms, one per
    sample, whose mean is P(w(A)) − D(A).
    """

    upper: float
    lower: float
    tau: float
    eta: Vector
    norms: Vector
    sample_gaps: Vector


def evaluate(
    problem: PNormProblem,
    A: Matrix,
    G: AnyArray,
    *,
    rescale: bool = True,
    step_squares: Vector | None = None,
) -> PNormEvaluation:
    """Bound the optimum from both sides by coefficients A and their products G_j = K_j A.

    The rows of A (N × classes) sum to zero and only the entry of the true class is positive; where that
    exceeds the weight of its sample, A is not dual feasible and only the upper bound says something. G has
    the shape (kernels, classes, N). Without ``rescale`` τ is 1. ``step_squares`` are the sums of squares, per
    class, of the steps by which G was updated, which its rounding grows with; None: G was computed from A at
    once.
    """
    s = energies(A, G)
    eta = dual_norm_and_weights(s, problem.q)[1]
    f = np.tensordot(eta, G, axes=1) / problem.scale
    squares = np.einsum("ic,ic->c", A, A) if step_squares is None else step_squares
    return _bounds(problem, A, s, eta, f, squares, rescale)


def evaluate_anew(problem: PNormProblem, A: Matrix) -> PNormEvaluation:
    """Bound the optimum by coefficients alone: energies, and one weighted sum of products, from the kernels."""
    support = np.flatnonzero(A.any(axis=1))
    s = problem.rows.squared_norms(support, A[support])
    eta = dual_norm_and_weights(s, problem.q)[1]
    f = problem.rows.weighted_products(eta, support, A[support]).T / problem.scale
    return _bounds(problem, A, s, eta, f, np.einsum("ic,ic->c", A, A), rescale=True)


def _bounds(
    problem: PNormProblem, A: Matrix, s: Vector, eta: Vector, f: AnyArray, squares: Vector, rescale: bool
) -> PNormEvaluation:
    """Return the bounds drawn from the s_j = tr(A'K_jA) and the scores f (classes, N) of coefficients."""
    hidden_energy, hidden_loss = _rounding_allowance(problem, s, eta, squares)
    size = dual_norm_and_weights(s + hidden_energy, problem.q)[0] / (2.0 * problem.scale * problem.n_samples)
    h = rival_leads(f, problem.y)
    if rescale:
        tau, value = best_multiple(size, h, problem.weight)
    else:
        tau, value = 1.0, size + float(np.mean(problem.weight * np.maximum(1.0 + h, 0.0)))
    return PNormEvaluation(
        upper=value + tau * hidden_loss,
        lower=_best_dual_multiple(A[np.arange(problem.n_samples), problem.y], size, problem.weight),
        tau=tau,
        eta=eta,
        norms=tau * eta * np.sqrt(s) / problem.scale,
        sample_gaps=sample_gaps(A, f, h, problem.y, problem.weight),
    )


def rival_leads(f: AnyArray, y: AnyArray) -> Vector:
    """Return h_i = max_{c ≠ y_i} f_ci − f_{y_i i} of scores f (classes, N): the hinge loss is [1 + h]_+."""
    index = np.arange(y.size)
    others = f.copy()
    others[y, index] = -np.inf
    return np.asarray(others.max(axis=0) - f[y, index])


def sample_gaps(A: Matrix, f: AnyArray, h: Vector, y: AnyArray, weight: Vector) -> Vector:
    """Return weight_i ℓ_i − A_{i,y_i} + A_i · f_i ≥ 0, the terms whose mean is P(w(A)) − D(A)."""
    losses = weight * np.maximum(1.0 + h, 0.0)
    return np.asarray(np.maximum(losses - A[np.arange(y.size), y] + np.einsum("ic,ci->i", A, f), 0.0))


def energies(A: Matrix, G: AnyArray) -> Vector:
    """Return s_j = tr(A'K_jA) from the products G_j = K_j A."""
    return np.asarray(np.maximum([np.einsum("ic,ci->", A, g) for g in G], 0.0))


def _rounding_allowance(
    problem: PNormProblem, s: Vector, eta: Vector, squares: Vector
) -> tuple[Vector, float]:
    """Return how much rounding may hide in the energies s, and in the mean loss.

    Rounding errors of sums behave like random walks; six standard deviations are allowed for. The hinge is
    convex, so the true loss exceeds the computed one by at most a fixed linear function of the errors of the
    scores, with slopes of length √2 at most per sample. Errors of single entries are independent and fade in
    a mean over N samples; those of coefficients and columns are shared by all samples and do not.
    """
    rows, deviations = problem.rows, 6.0
    energy = rows.entry_errors * float(squares.sum()) + rows.unit_roundoff * s
    single = float(np.sqrt(2.0 / problem.n_samples)) * float(eta @ rows.entry_errors)
    shared = 2.0 * rows.unit_roundoff * float(eta @ np.abs(rows.diagonals).mean(axis=1))
    length = float(np.sqrt(squares.max(initial=0.0)))
    loss = (single + shared) * length / problem.scale * float(problem.weight.mean())
    return deviations * energy, deviations * loss


def best_multiple(size: float, h: Vector, weight: Vector) -> tuple[float, float]:
    """Return the τ ≥ 0 with the least τ² size + mean(weight max(0, 1 + τh)), and that value.

    The slope rises with τ, so its zero is bracketed and halved; ``size`` is (λ/2)‖w‖².
    """

    def value(tau: float) -> float:
        return tau * tau * size + float(np.mean(weight * np.maximum(1.0 + tau * h, 0.0)))

    def slope(tau: float) -> float:
        return 2.0 * tau * size + float(np.mean(weight * h * (1.0 + tau * h > 0.0)))

    if size <= 0.0 or slope(0.0) >= 0.0:
        return 0.0, value(0.0)
    low, high = 0.0, 1.0
    while slope(high) < 0.0:
        low, high = high, 2.0 * high
    for _ in range(60):  # halvings: to the last digit of a double
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return high, value(high)


def _best_dual_multiple(gains: Vector, size: float, weight: Vector) -> float:
    """Return the largest D(tA) = t mean(gains) − t² size over the t ≥ 0 that keep tA dual feasible."""
    used = gains > 0.0
    if not used.any() or (gains > weight * (1.0 + 1e-9)).any():
        return 0.0  # A = 0 is always dual feasible
    gain = float(gains.mean())
    largest = float((weight[used] / gains[used]).min())
    t = min(largest, gain / (2.0 * size)) if size > 0.0 else largest
    return t * gain - t * t * size


def dual_feasible(A: Matrix, y: AnyArray, weight: Vector) -> Matrix:
    """Return A with every row shortened until the entry of the true class is at most its weight."""
    gains = A[np.arange(y.size), y]
    excess = np.divide(gains, weight, out=np.zeros_like(gains), where=weight > 0.0)
    rows = A / np.maximum(1.0, excess)[:, None]
    rows[weight <= 0.0] = 0.0
    return rows


@dataclass(frozen=True)
class PNormResult:
    """f_c(x) = Σ_j eta_j Σ_i coef_ic k_j(x_i, x), the norms ‖w^j‖, and the bounds that hold for it.

    ``passes`` counts the rows of all kernels that were used, in units of N. ``stopped`` says why it ended:
    "converged", "epochs", "max_passes", "stalled" or "interrupted".
    """

    coef: Matrix = field(repr=False)
    eta: Vector
    norms: Vector
    certificate: Certificate
    history: tuple[Record, ...] = field(repr=False)
    passes: float
    stopped: str


class BoundTracker:
    """The best coefficients evaluated so far, the best bound from either side, and their history."""

    def __init__(self, problem: PNormProblem, progress: Progress | None) -> None:
        self.problem, self.progress = problem, progress
        self.lower, self.upper = 0.0, float("inf")
        self.history: list[Record] = []
        self.best: tuple[Matrix, PNormEvaluation] | None = None
        self._start = time.perf_counter()

    @property
    def certificate(self) -> Certificate:
        # Where the bounds agree to the last digit, rounding may put the lower one above the upper one.
        return Certificate(self.upper, min(self.lower, self.upper))

    def add(self, A: Matrix, evaluation: PNormEvaluation) -> None:
        """Take an evaluation into account, and report it."""
        self.lower = max(self.lower, evaluation.lower)
        if self.best is None or evaluation.upper < self.upper:
            self.upper = evaluation.upper
            self.best = A.copy(), evaluation
        seconds = time.perf_counter() - self._start
        self.history.append(Record(self.certificate, seconds, int((evaluation.norms > 0.0).sum())))
        if self.progress is not None:
            self.progress(self.history[-1])

    def forget_best(self) -> None:
        """Keep the lower bound only: a solver that returns its last iterate is bounded by that one."""
        self.best, self.upper = None, float("inf")

    def state(self) -> dict[str, Any]:
        """Return the bounds and the coefficients they belong to, to be saved."""
        assert self.best is not None
        A, evaluation = self.best
        numbers = {"lower": self.lower, "upper": self.upper, "best_tau": evaluation.tau}
        return {"best_A": A, "best_eta": evaluation.eta, "best_norms": evaluation.norms} | numbers

    def restore(self, state: dict[str, AnyArray]) -> None:
        """Continue from saved bounds."""
        self.lower, self.upper = float(state["lower"]), float(state["upper"])
        tau, eta, norms = float(state["best_tau"]), state["best_eta"], state["best_norms"]
        self.best = state["best_A"], PNormEvaluation(self.upper, self.lower, tau, eta, norms, np.empty(0))

    def result(self, passes: float, stopped: str) -> PNormResult:
        """Return the best coefficients evaluated."""
        assert self.best is not None
        A, found = self.best
        coef = found.tau * A / self.problem.scale
        return PNormResult(
            coef, found.eta, found.norms, self.certificate, tuple(self.history), passes, stopped
        )


class PNormSolver(Part, ABC):
    """A solver of the multiclass p-norm problem [Orabona10, Eq. (9)]."""

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError when a parameter is out of range."""

    @abstractmethod
    def solve(
        self,
        problem: PNormProblem,
        rng: np.random.Generator,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> PNormResult:
        """Return coefficients with two bounds of the optimum; a saved checkpoint is continued from."""
