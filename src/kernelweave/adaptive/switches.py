"""Kernels switched on and off sample by sample [Liu14]: learning the switches, and predicting with them.

`learn_switches` alternates between a convex MKL problem for given switches and, for its solution, one small
0/1 program per sample (`fewest_kernels`). New samples have no label to choose switches by: they take one of
the patterns of the training samples (`distinct_patterns`, `best_patterns`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.adaptive.local_grams import LocalGrams, StreamedLocalGrams, weighted_locally
from kernelweave.learners.margins import ScaledMargins
from kernelweave.solvers import Certificate, Problem, Progress, Result, Solver, WarmStart
from kernelweave.solvers.block_descent import block_norms

Switches = NDArray[np.bool_]


@dataclass(frozen=True)
class SwitchRule:
    """What may be switched.

    Parameters
    ----------
    prior : bool array of shape (n, M), the switches h_0 to start from.
    max_flips : m_0, how many switches of a sample may differ from its prior.
    available : bool array of shape (n, M), which kernels a sample has; others are never switched on.
    scale_margins : require of a sample not the margin 1 but τ_i, in proportion to the norms of its kernels.
    max_rounds : most rounds of the alternation.
    """

    prior: Switches
    max_flips: int
    available: Switches
    scale_margins: bool = False
    max_rounds: int = 30


@dataclass(frozen=True)
class SwitchingRound:
    """One round: the bounds of its convex problem, and how many of its switches were off."""

    certificate: Certificate
    n_off: int


@dataclass(frozen=True)
class LearntSwitches:
    """The best round: its solution, switches (n, M) and margins τ; and why no further round followed."""

    result: Result
    switches: Switches = field(repr=False)
    margins: Vector = field(repr=False)
    rounds: tuple[SwitchingRound, ...] = ()
    stopped: str = ""


def learn_switches(
    problem: Problem, solver: Solver, rule: SwitchRule, progress: Progress | None = None
) -> LearntSwitches:
    r"""Alternate between the MKL problem for given switches and the switches for its solution.

    Parameters
    ----------
    problem : the problem with every kernel on; its stack must hold the kernels uncentred, as they are.
    solver : for the convex problems.
    rule : what may be switched.
    progress : called after every inner solve.

    Notes
    -----
    [Liu14, Algorithm 1]. A sample keeps the margin it has, or τ_i where it has more, so its present switches
    stay feasible and the objective never rises while τ ≡ 1. A sample whose new switches would leave it
    without any weighted kernel keeps its old ones. The best round is returned.
    Differs from the paper: ξ is recomputed from the decision values; τ ≡ 1 unless asked for.
    """
    assert solver.tol is not None
    switches, margins = rule.prior & rule.available, np.ones(problem.grams.n_samples)
    result: Result | None = None
    best: LearntSwitches | None = None
    rounds, visited, stopped = list[SwitchingRound](), set[bytes](), "max_rounds"
    for _ in range(rule.max_rounds):
        # 1. Weights and SVM for these switches, started from those of the last round.
        grams = weighted_locally(problem.grams, switches.T.astype(np.float64))
        result = _solve_for_switches(replace(problem, grams=grams), solver, margins, result, progress)
        objective = result.certificate.upper
        decrease = rounds[-1].certificate.upper - objective if rounds else np.inf
        rounds.append(SwitchingRound(result.certificate, int((~switches).sum())))
        if best is None or objective < best.result.certificate.upper:
            best = LearntSwitches(result, switches, margins)
        if result.stopped == "interrupted":
            stopped = "interrupted"
            break
        # 2. Stop where nothing is gained. Learnt margins change the problem itself, so the objective may rise
        # and a later round may still be better: there only a standstill counts.
        if (abs(decrease) if rule.scale_margins else decrease) <= solver.tol * abs(objective):
            stopped = "converged"
            break
        # 3. New switches and margins for this solution; ones solved for before would only go in circles.
        visited.add(_key(switches, margins))
        switches, margins = _update(result, grams, problem.y, switches, margins, rule)
        if _key(switches, margins) in visited:
            stopped = "converged"
            break
    assert best is not None
    return replace(best, rounds=tuple(rounds), stopped=stopped)


def contributions(result: Result, grams: LocalGrams | StreamedLocalGrams) -> Matrix:
    """Return g_ip = eta_p Σ_j v_j h_jp k_p(x_j, x_i): what kernel p adds to f(x_i) when it is on."""
    return np.asarray((result.eta[:, None] * grams.column_weighted_matvecs(result.inner.coef)).T)


def _solve_for_switches(
    problem: Problem, solver: Solver, margins: Vector, last: Result | None, progress: Progress | None
) -> Result:
    if (margins != 1.0).any():
        learner = ScaledMargins(problem.learner, margins)  # type: ignore[arg-type]
        problem = replace(problem, learner=learner)
    if last is None:
        return solver.run(problem, progress=progress)
    return solver.run(problem, WarmStart(last.eta, last.inner.coef), progress)


def _update(
    result: Result,
    grams: LocalGrams | StreamedLocalGrams,
    y: AnyArray,
    switches: Switches,
    margins: Vector,
    rule: SwitchRule,
) -> tuple[Switches, Vector]:
    """Return the switches [Liu14, Eq. (15)] and margins [Liu14, Eq. (16)] that follow from a solution."""
    g, b = contributions(result, grams), float(result.inner.intercept)
    reached = y * (np.where(switches, g, 0.0).sum(axis=1) + b)
    required = np.minimum(margins * float(result.inner.margin), reached)  # τ(1 - ξ)
    found, feasible = fewest_kernels(
        y[:, None] * g, required - y * b, rule.prior, rule.max_flips, rule.available
    )
    norms = block_norms(result.eta, grams.energies(result.inner.coef))
    keep = ~feasible | ~_have_weight(found, norms)
    found = np.where(keep[:, None], switches, found)
    if not rule.scale_margins:
        return found, margins
    shares = np.where(found, norms, 0.0).sum(axis=1) / (norms.sum() or 1.0)
    return found, np.where(_have_weight(found, norms), shares, margins)


def _have_weight(switches: Switches, norms: Vector) -> Switches:
    """Return which samples have a kernel on with ‖f_m‖ beyond rounding: τ_i > 0, and f is not constant."""
    return np.asarray((switches & (norms > 1e-9 * norms.max(initial=0.0))).any(axis=1))


def _key(switches: Switches, margins: Vector) -> bytes:
    return np.packbits(switches).tobytes() + margins.round(6).tobytes()


def fewest_kernels(
    gains: Matrix, needed: Vector, prior: Switches, max_flips: int, available: Switches | None = None
) -> tuple[Switches, Switches]:
    r"""Solve min ‖h_i‖₁ over h_i in {0, 1}^M with h_i'a_i ≥ r_i and ‖h_i − h_0i‖₁ ≤ m_0, for all i at once.

    Parameters
    ----------
    gains : array of shape (n, M)
        a_ip, what kernel p adds to the margin of sample i.
    needed : array of shape (n,)
        r_i, what the kernels have to add up to.
    prior : bool array of shape (n, M) or (M,)
        h_0.
    max_flips : int
        m_0, the entries in which h_i may differ from h_0i.
    available : bool array of shape (n, M) or None
        Kernels a sample has; others are never switched on. None: all.

    Returns
    -------
    switches : bool array of shape (n, M), the solutions; the prior where there is none.
    feasible : bool array of shape (n,), where there is one.

    Notes
    -----
    [Liu14, Eq. (15)]. Of all ways to switch d kernels off and e on, the one with the largest margin takes the
    d smallest gains among those on and the e largest among those off. So cumulative sums of the sorted gains
    show for every (d, e) whether it is feasible, and the least e − d wins; of equals that with fewer flips.
    Differs from the paper: no integer programming is needed; which of several optima is taken is stated.

    Examples
    --------
    >>> import numpy as np
    >>> gains = np.array([[3.0, -1.0, 0.5, 0.2]])
    >>> fewest_kernels(gains, np.array([3.0]), np.ones(4, dtype=bool), max_flips=2)[0]
    array([[ True, False,  True, False]])

    """
    n, n_kernels = gains.shape
    available = np.ones((n, n_kernels), dtype=bool) if available is None else available
    on = np.broadcast_to(prior, (n, n_kernels)) & available
    off = ~on & available
    # Sums are rounded: without a tolerance the present switches of a sample could seem infeasible.
    target = needed - 1e-9 * np.maximum(1.0, np.abs(gains).sum(axis=1))
    n_drops = min(max_flips, int(on.sum(axis=1).max(initial=0)))
    n_adds = min(max_flips, int(off.sum(axis=1).max(initial=0)))
    drops, lost = _cheapest(gains, on, n_drops)
    adds, won = _cheapest(-gains, off, n_adds)
    total = np.where(on, gains, 0.0).sum(axis=1)

    best = np.full(n, np.inf)
    d, e = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
    for added in range(n_adds + 1):
        most = min(n_drops, max_flips - added)
        fits = total[:, None] - lost[:, : most + 1] - won[:, added, None] >= target[:, None]
        count = np.where(fits, np.arange(most + 1), -1).max(axis=1)
        better = (count >= 0) & (added - count < best)  # the first of equals has the fewest flips
        best[better] = (added - count)[better]
        d[better], e[better] = count[better], added
    switches = on.copy()
    _flip(switches, drops, d, False)
    _flip(switches, adds, e, True)
    return switches, np.isfinite(best)


def _cheapest(costs: Matrix, among: Switches, most: int) -> tuple[AnyArray, Matrix]:
    """Return the places of the cheapest entries among some, in order, and the cost of the first 0, 1, ..."""
    costs = np.where(among, costs, np.inf)
    order = np.argsort(costs, axis=1, kind="stable")[:, :most]
    sums = np.zeros((costs.shape[0], most + 1))
    np.cumsum(np.take_along_axis(costs, order, axis=1), axis=1, out=sums[:, 1:])
    return order, sums


def _flip(switches: Switches, order: AnyArray, counts: AnyArray, value: bool) -> None:
    """Set the first ``counts`` places of every row's order to a value."""
    rows, ranks = np.nonzero(np.arange(order.shape[1]) < counts[:, None])
    switches[rows, order[rows, ranks]] = value


def distinct_patterns(switches: Switches) -> tuple[Switches, Indices]:
    """Return the distinct rows of switches (n, M), the most frequent first, and how often each occurs."""
    patterns, counts = np.unique(switches, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return patterns[order], counts[order]


def best_patterns(
    contributions: Matrix, intercept: float, patterns: Switches, *, signed: bool
) -> tuple[Vector, Indices]:
    r"""Return the score of every sample under the pattern that suits it best, and which pattern that is.

    Parameters
    ----------
    contributions : array of shape (rows, M)
        What every kernel adds to f(x) when it is on.
    intercept : float
        b.
    patterns : bool array of shape (P, M)
        The patterns h to choose from.
    signed : bool
        Whether both signs count: True takes the largest |f_h(x)| ([Liu14, Eq. (17)]: the best pair of label
        and pattern), False the largest f_h(x) ([Liu14, Eq. (18)], one class against the rest). Of equals the
        first pattern wins.
    """
    n = contributions.shape[0]
    values, chosen = np.empty(n), np.empty(n, dtype=np.intp)
    weights = patterns.T.astype(np.float64)
    # There may be as many patterns as training samples: a batch of scores stays near 32 MB.
    for rows in gen_batches(n, max(1, 4_000_000 // len(patterns))):
        scores = contributions[rows] @ weights + intercept
        chosen[rows] = (np.abs(scores) if signed else scores).argmax(axis=1)
        values[rows] = np.take_along_axis(scores, chosen[rows, None], axis=1)[:, 0]
    return values, chosen


def label_association(switches: Switches, y: AnyArray) -> float:
    """Return how much of the variance of the label ±1 a linear function of the switches explains, 0 to 1.

    What as many random switches would explain is taken off: the adjusted R².
    """
    off = (switches - switches.mean(axis=0))[:, switches.any(axis=0) & ~switches.all(axis=0)]
    label = y - y.mean()
    basis, sizes, _ = np.linalg.svd(off, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes.max(initial=1.0)]
    spare = len(y) - 1 - basis.shape[1]
    if spare < 1:
        return 0.0
    left = 1.0 - float(np.sum((basis.T @ label) ** 2)) / float(label @ label)
    adjusted = 1.0 - left * (len(y) - 1) / spare
    return max(0.0, float(adjusted))
