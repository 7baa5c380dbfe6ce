"""Kernels switched on and off sample by sample, learnt together with the machine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.adaptive.local_grams import LazyLocalGrams, LocalGrams, localised
from kernelweave.adaptive.switches import Switches, fewest_kernels
from kernelweave.gram import GramStack
from kernelweave.learners.margins import ScaledMargins
from kernelweave.solvers import Certificate, Problem, Progress, Result, Solver
from kernelweave.solvers.block import block_norms


@dataclass(frozen=True)
class Rule:
    """What may be switched: the prior h_0, how far to depart from it, and which kernels a sample has.

    With ``scale_margins`` every sample is asked for a margin τ_i in proportion to what its kernels carry.
    """

    prior: Switches
    max_flips: int
    available: Switches
    scale_margins: bool = False
    max_rounds: int = 30


@dataclass(frozen=True)
class Round:
    """One round: the bounds of its convex problem, and how many switches it started from were off."""

    certificate: Certificate
    n_off: int


@dataclass(frozen=True)
class Adapted:
    """The best round: its machine, its switches (n, M), its margins τ, and why no further one followed."""

    result: Result
    switches: Switches = field(repr=False)
    margins: Vector = field(repr=False)
    rounds: tuple[Round, ...]
    stopped: str


def adapt(
    problem: Problem,
    solver: Solver,
    rule: Rule,
    progress: Progress | None = None,
) -> Adapted:
    r"""Alternate between the convex problem for given switches and the switches for its machine.

    Parameters
    ----------
    problem : the problem with every kernel on; its stack must hold the kernels uncentred, as they are.
    solver : for the convex problems.
    rule : what may be switched.
    progress : called after every machine.

    Notes
    -----
    [Liu14, Algorithm 1]. A sample keeps the margin it has, or τ_i where it has more, so its present switches
    stay feasible and the objective never rises while τ ≡ 1. A sample whose new switches would leave it
    without any weighted kernel keeps its old ones. The best round is returned.
    Differs from the paper: ξ is recomputed from the decision values; τ ≡ 1 unless asked for.
    """
    tol = solver.tol
    assert tol is not None
    switches, margins = rule.prior & rule.available, np.ones(problem.bank.n_samples)
    best: Adapted | None = None
    near: Result | None = None
    rounds, seen, stopped = list[Round](), set[bytes](), "max_rounds"
    for _ in range(rule.max_rounds):
        grams = localised(problem.bank, switches.T.astype(np.float64))
        near = _solved(problem, grams, solver, margins, near, progress)
        rounds.append(Round(near.certificate, int((~switches).sum())))
        objective = near.certificate.upper
        gain = np.inf if len(rounds) == 1 else rounds[-2].certificate.upper - objective
        if best is None or objective < best.result.certificate.upper:
            best = Adapted(near, switches, margins, (), "")
        seen.add(_key(switches, margins))
        if near.stopped == "interrupted":
            stopped = "interrupted"
            break
        # With learnt margins the objective may rise; then a later round may still be better.
        if (abs(gain) if rule.scale_margins else gain) <= tol * abs(objective):
            stopped = "converged"
            break
        switches, margins = _switched(near, grams, problem.y, switches, margins, rule)
        if _key(switches, margins) in seen:
            stopped = "converged"
            break
    assert best is not None
    return replace(best, rounds=tuple(rounds), stopped=stopped)


def contributions(result: Result, grams: LocalGrams | LazyLocalGrams) -> Matrix:
    """Return g_ip = eta_p Σ_j v_j h_jp k_p(x_j, x_i): what kernel p says of sample i when it is on."""
    return np.asarray((result.eta[:, None] * grams.reach(result.machine.coef)).T)


def _solved(
    problem: Problem,
    grams: GramStack,
    solver: Solver,
    margins: Vector,
    near: Result | None,
    progress: Progress | None,
) -> Result:
    learner = problem.learner
    if (margins != 1.0).any():
        learner = ScaledMargins(learner, margins)  # type: ignore[arg-type]
    return solver.run(
        replace(problem, bank=grams, learner=learner),
        start=None if near is None else near.eta,
        warm=None if near is None else near.machine.coef,
        progress=progress,
    )


def _switched(
    result: Result,
    grams: LocalGrams | LazyLocalGrams,
    y: AnyArray,
    switches: Switches,
    margins: Vector,
    rule: Rule,
) -> tuple[Switches, Vector]:
    g, b = contributions(result, grams), float(result.machine.intercept)
    has = y * (np.where(switches, g, 0.0).sum(axis=1) + b)
    asked = np.minimum(margins * float(result.machine.margin), has)  # τ(1 - ξ)
    found = fewest_kernels(y[:, None] * g, asked - y * b, rule.prior, rule.max_flips, rule.available)
    norms = block_norms(result.eta, grams.energies(result.machine.coef))
    empty = ~found.feasible | ~_carries(found.switches, norms)
    new = np.where(empty[:, None], switches, found.switches)
    if not rule.scale_margins:
        return new, margins
    shares = np.where(new, norms, 0.0).sum(axis=1) / (norms.sum() or 1.0)
    return new, np.where(_carries(new, norms), shares, margins)


def _carries(switches: Switches, norms: Vector) -> Switches:
    """Tell which samples have a kernel on that carries weight: τ_i > 0, and f is more than its intercept."""
    return np.asarray((switches & (norms > 1e-9 * norms.max(initial=0.0))).any(axis=1))


def _key(switches: Switches, margins: Vector) -> bytes:
    return np.packbits(switches).tobytes() + margins.round(6).tobytes()
