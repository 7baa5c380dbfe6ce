"""The cutting plane: weigh the candidates found so far, add the most violated one of each kernel, repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import chain, takewhile
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.geometry import GroupBox
from kernelweave.gram.plain import PlainGrams
from kernelweave.gram.rounding import arithmetic_errors
from kernelweave.learners import UnbiasedSquaredHinge
from kernelweave.solvers import Certificate, Newton, Result, WarmStart
from kernelweave.weak_labels.ambiguity import Ambiguity, Candidate
from kernelweave.weak_labels.oracle import CandidateObjective, MultiStart, Oracle, ScoredCandidate, by_value

# One candidate for every kernel.
Group: TypeAlias = tuple[ScoredCandidate, ...]


@dataclass(frozen=True)
class InputOutputGrams(PlainGrams):
    r"""The input-output kernels A(h) K_m A(h)' of every kernel m and each of its candidates h.

    Stored are the M kernels of the points and the candidates; of the n × n input-output kernels only the
    weighted sum is ever formed. Kernel m of round t has the index t M + m.

    Parameters
    ----------
    grams : M kernel matrices of the points.
    ambiguity : what candidates mean.
    candidates : for each round one candidate per kernel.

    Notes
    -----
    [Xu14, Def. 4.7, Eq. (4.1)]. Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.weak_labels import InputOutputGrams, Labelings
    >>> y = np.array([1, -1], dtype=np.int8)
    >>> labelings = Labelings.balanced(np.array([1.0, 0.0]), 0, 1)
    >>> stack = InputOutputGrams((np.ones((2, 2)),), labelings, ((y,),))
    >>> stack.combine(np.array([0.5]))
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])

    """

    grams: Sequence[Matrix]
    ambiguity: Ambiguity
    candidates: Sequence[Sequence[Candidate]]
    n_threads: int = 1

    @property
    def n_kernels(self) -> int:
        return len(self.grams) * len(self.candidates)

    @property
    def n_samples(self) -> int:
        return self.ambiguity.n_samples

    @property
    def sizes(self) -> Vector:
        # A sample is a mean of signed points: its norm is at most the largest of theirs.
        return np.tile([float(np.diagonal(K).max()) for K in self.grams], len(self.candidates))

    @property
    def errors(self) -> Vector:
        return arithmetic_errors(self.sizes, self.ambiguity.n_points)

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        Q = np.zeros((self.n_samples, self.n_samples)) if out is None else out
        Q.fill(0.0)
        weights = eta.reshape(len(self.candidates), len(self.grams))
        for m, K in enumerate(self.grams):
            self.ambiguity.add_kernels(K, self.candidates_of(m), weights[:, m], Q)
        return Q

    def matvecs(self, coef: AnyArray, needed: AnyArray | None = None) -> AnyArray:  # noqa: ARG002
        columns = coef.reshape(self.n_samples, -1)
        parts = np.stack([self._matvecs(np.ascontiguousarray(column)) for column in columns.T], axis=-1)
        return parts.reshape(self.n_kernels, *coef.shape)

    def point_coef(self, eta: Vector, alpha: Vector) -> Matrix:
        """Return, per kernel, Σ_t eta_mt A(h_mt)'α: the classifier's coefficients on the points."""
        weights = eta.reshape(len(self.candidates), len(self.grams))
        coef = np.zeros((len(self.grams), self.ambiguity.n_points))
        for t, m in np.argwhere(weights):
            coef[m] += weights[t, m] * self.ambiguity.to_points(self.candidates[t][m], alpha)
        return coef

    def _matvecs(self, alpha: Vector) -> Matrix:
        out = np.empty((len(self.candidates), len(self.grams), self.n_samples))
        for m, K in enumerate(self.grams):
            values, _ = CandidateObjective(K, alpha, self.ambiguity).evaluate(self.candidates_of(m))
            for t, row in enumerate(self.candidates):
                out[t, m] = self.ambiguity.to_samples(row[m], np.ascontiguousarray(values[:, t]))
        return out.reshape(self.n_kernels, self.n_samples)

    def candidates_of(self, m: int) -> list[Candidate]:
        """Return the candidates of kernel m, round by round."""
        return [row[m] for row in self.candidates]


@dataclass(frozen=True)
class CuttingPlaneRound:
    """One round: the certificate of its convex problem, and how far new candidates exceed those in use.

    ``n_iter`` are the iterations of the solver, each of which solves one SVM.
    """

    n_candidates: int
    certificate: Certificate
    violation: float
    n_iter: int

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Model files of version 0.1 call the iterations n_machines.
        self.__dict__.update({"n_iter" if name == "n_machines" else name: state[name] for name in state})


@dataclass(frozen=True)
class CuttingPlaneResult:
    """What was learnt: candidates and their weights, by round and kernel, a classifier, and why it ended.

    ``stopped`` is "no violated candidate", "repeated candidate", "round cap" or "interrupted"; ``result`` is
    the solution of the last round's convex problem; ``point_coef`` are the coefficients of the points, one
    row per kernel: f(x) = Σ_m Σ_j point_coef[m, j] k_m(x, x_j).
    """

    candidates: tuple[tuple[Candidate, ...], ...] = field(repr=False)
    candidate_weights: Matrix
    alpha: Vector = field(repr=False)
    point_coef: Matrix = field(repr=False)
    result: Result = field(repr=False)
    rounds: tuple[CuttingPlaneRound, ...]
    stopped: str

    @property
    def n_iter(self) -> int:
        """Iterations of the solver in all rounds."""
        return sum(each.n_iter for each in self.rounds)


@dataclass(frozen=True)
class InputOutputCuttingPlane:
    r"""Learn which candidates to believe, and a classifier with them.

    .. math:: \min_{\eta} \max_{\alpha \ge 0} 1'\alpha - \sum_i \tfrac{\alpha_i^2}{2C_i}
       - \sum_{t,m} \eta_{tm} \tfrac12 \alpha'A(h_{tm})K_mA(h_{tm})'\alpha,
       \qquad \sum_t \|\eta_t\|_2 \le 1,\; \|\eta_t\|_2 \le \theta

    Parameters
    ----------
    theta : the cap on a candidate's weight is theta / T in a round with T candidates; None is no cap.
    max_rounds : most candidates per kernel.
    violation_tol : relative excess over the candidates in use from which on a new one is added.
    tol, max_iter : relative duality gap of every round's convex problem, and most iterations for it.
    oracle : the search for the most violated candidate.
    kept_share : share of the old weights that a round starts from; the rest goes to the new candidates, which
        would enter slowly from zero.

    Notes
    -----
    [Xu14, Eq. (4.2), (4.9), Algorithm 3]: group t of the weights holds, for each kernel, the candidate that
    round t found for it. With an exact oracle the hard margin solves the problem over all groups of
    candidates; θ = c/T changes the problem from round to round, so its objective may rise.
    Differs from the paper: the C form, second-order steps, many starts, and a stated reason for stopping.

    """

    theta: float | None = None
    max_rounds: int = 8
    violation_tol: float = 1e-2
    tol: float = 1e-3
    max_iter: int | None = None
    oracle: Oracle = field(default_factory=MultiStart)
    kept_share: float = 0.8

    def solve(
        self,
        grams: Sequence[Matrix],
        ambiguity: Ambiguity,
        C: Vector,
        starts: Sequence[Vector],
        report: Callable[[CuttingPlaneRound], None] | None = None,
    ) -> CuttingPlaneResult:
        """Alternate between the weights of the candidates and the search for new ones.

        ``grams`` are the kernels of the points, ``C`` the price of a margin violation by sample; ``starts``
        are scores of the points: the first candidates follow starts[0], all searches begin at each of them.
        """
        *_, last = self.rounds(grams, ambiguity, C, starts, report)
        return last

    def rounds(
        self,
        grams: Sequence[Matrix],
        ambiguity: Ambiguity,
        C: Vector,
        starts: Sequence[Vector],
        report: Callable[[CuttingPlaneRound], None] | None = None,
        first: Candidate | None = None,
    ) -> Iterator[CuttingPlaneResult]:
        """Yield what each round has learnt: the t-th is the answer with ``max_rounds=t``.

        The parameters are those of `solve`; ``first`` is the first candidate, in place of that of starts[0].
        """
        solver = Newton(tol=self.tol, max_iter=self.max_iter)
        learner, y = UnbiasedSquaredHinge(), np.ones(ambiguity.n_samples)
        first = ambiguity.from_scores(starts[0]) if first is None else first
        candidates = [(first,) * len(grams)]

        def key(group: Group) -> bytes:
            return b"|".join(ambiguity.key(each.candidate) for each in group)

        known_keys = {b"|".join(ambiguity.key(h) for h in candidates[0])}
        rounds: list[CuttingPlaneRound] = []
        eta: Vector | None = None
        alpha: Vector | None = None
        while True:
            # 1. The weights of the candidates so far, and the SVM with them.
            stack = InputOutputGrams(grams, ambiguity, candidates)
            geometry = self._geometry(len(grams), len(candidates))
            start = None if eta is None else WarmStart(self._extended(geometry, eta, len(grams)), alpha)
            result = solver.solve(stack, y, learner, geometry, weight=C, start=start)
            eta, alpha = result.eta, result.inner.coef
            learnt = CuttingPlaneResult(
                tuple(candidates),
                eta.reshape(len(candidates), len(grams)),
                alpha,
                stack.point_coef(eta, alpha),
                result,
                tuple(rounds),
                "interrupted",
            )
            if result.stopped == "interrupted":
                yield learnt
                return
            # 2. The most violated candidate of every kernel.
            scores = point_values(grams, learnt.point_coef)
            try:
                found = self._search(stack, alpha, [scores, *starts])
            except KeyboardInterrupt:  # the weights learnt so far are worth keeping
                yield learnt
                return
            least = _least_in_use(stack.energies(alpha), eta, len(grams))
            new, violation = self._first_new(found, least, lambda group: key(group) in known_keys)
            rounds.append(CuttingPlaneRound(len(candidates), result.certificate, violation, result.n_iter))
            if report is not None:
                report(rounds[-1])
            # 3. Add them, unless there is a reason to stop.
            stopped = "round cap"
            if new is None:
                stopped = "no violated candidate" if violation <= self.violation_tol else "repeated candidate"
            yield replace(learnt, rounds=tuple(rounds), stopped=stopped)
            if new is None or len(candidates) >= self.max_rounds:
                return
            known_keys.add(key(new))
            candidates.append(tuple(ambiguity.orient(each.candidate, scores) for each in new))

    def _geometry(self, n_grams: int, n_rounds: int) -> GroupBox:
        cap = 1.0 if self.theta is None else self.theta / n_rounds
        return GroupBox(groups=np.repeat(np.arange(n_rounds), n_grams).tolist(), theta=cap)

    def _extended(self, geometry: GroupBox, eta: Vector, n_grams: int) -> Vector:
        """Return weights to start the next round from: the old ones, and a share for the new candidates."""
        new = np.full(n_grams, (1.0 - self.kept_share) / np.sqrt(n_grams))
        return geometry.project(np.concatenate([self.kept_share * eta, new]))

    def _search(
        self, stack: InputOutputGrams, alpha: Vector, starts: Sequence[Vector]
    ) -> list[list[ScoredCandidate]]:
        """Return candidates of large value for every kernel; the best one in use gives a start as well."""
        found = []
        for m, K in enumerate(stack.grams):
            objective = CandidateObjective(K, alpha, stack.ambiguity)
            images, values = objective.evaluate(stack.candidates_of(m))
            best = np.ascontiguousarray(images[:, values.argmax()])
            found.append(self.oracle.find(objective, [*starts, best]))
        return found

    def _first_new(
        self, found: Sequence[Sequence[ScoredCandidate]], least: float, known: Callable[[Group], bool]
    ) -> tuple[Group | None, float]:
        """Return the first violated group that is not known yet, and its violation; else the largest one."""
        by_norm = groups_by_norm(found)
        best = next(by_norm)
        preferred = tuple(each[0] for each in found)
        violated = takewhile(lambda group: _violation(group, least) > self.violation_tol, by_norm)
        for group in chain([preferred, best], violated):
            violation = _violation(group, least)
            if violation > self.violation_tol and not known(group):
                return group, violation
        return None, _violation(best, least)


def groups_by_norm(found: Sequence[Sequence[ScoredCandidate]]) -> Iterator[Group]:
    """Yield groups of one candidate per kernel, by falling norm of their values."""
    ranked = [by_value(each) for each in found]

    def group(ranks: tuple[int, ...]) -> Group:
        return tuple(each[rank] for each, rank in zip(ranked, ranks, strict=True))

    first = (0,) * len(ranked)
    queue, seen = [(-_norm(group(first)), first)], {first}
    while queue:
        _, ranks = heappop(queue)
        yield group(ranks)
        for m, rank in enumerate(ranks):
            following = (*ranks[:m], rank + 1, *ranks[m + 1 :])
            if rank + 1 < len(ranked[m]) and following not in seen:
                seen.add(following)
                heappush(queue, (-_norm(group(following)), following))


def _norm(group: Group) -> float:
    return float(np.linalg.norm([each.value for each in group]))


def _violation(group: Group, least: float) -> float:
    """Return how far the norm of a group's energies exceeds the least one in use, as a share of it."""
    new = 0.5 * _norm(group)
    if least > 0.0:
        return new / least - 1.0
    return np.inf if new > 0.0 else 0.0


def _least_in_use(energies: Vector, eta: Vector, n_grams: int) -> float:
    """Return the least norm of energies of the groups in use, with which a new group competes.

    A group at its cap may be better than the others. While the caps leave some of the total weight unused a
    new group competes with nothing: 0.
    """
    group_energies = np.linalg.norm(energies.reshape(-1, n_grams), axis=1)
    group_weights = np.linalg.norm(eta.reshape(-1, n_grams), axis=1)
    negligible = 1e-6
    if group_weights.sum() < 1.0 - negligible:
        return 0.0
    return float(group_energies[group_weights > negligible * group_weights.max()].min())


def point_values(grams: Sequence[Matrix], coef: Matrix) -> Vector:
    """Return Σ_m K_m coef_m, the decision values of the points."""
    parts = (K @ c for K, c in zip(grams, coef, strict=True) if c.any())
    return np.asarray(sum(parts, start=np.zeros(coef.shape[1])))


def supervised_scores(grams: Sequence[Matrix], A: sparse.csr_array, y: Vector, C: Vector) -> Vector:
    """Return the scores of all points by the SVM with the average kernel, trained on what has a label.

    A row of A makes a labelled sample of the points: a single one, or the mean of a bag.
    """
    rows = np.asarray(sum(A @ K for K in grams)) / len(grams)
    svm = UnbiasedSquaredHinge().solve(np.ascontiguousarray(A @ rows.T), y, C, tol=1e-6)
    return np.asarray(svm.coef @ rows)
