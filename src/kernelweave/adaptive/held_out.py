"""Switches judged on samples held out: chosen without help of the sample's own label, and compared to MKL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event

import numpy as np
from sklearn.utils import gen_batches

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.adaptive.local_grams import weighted_locally
from kernelweave.adaptive.switches import (
    LearntSwitches,
    Switches,
    SwitchRule,
    best_patterns,
    distinct_patterns,
    learn_switches,
)
from kernelweave.estimators.progress import interruptible, raising_when_stopped
from kernelweave.estimators.validation import Fold, stratified_folds
from kernelweave.solvers import Problem, Progress, Solver


@dataclass(frozen=True)
class SwitchProblem:
    """The problems of all classes, on the same uncentred kernels.

    Parameters
    ----------
    problem : kernels, learner, geometry and weights; its ``y`` (n, columns) are the labels ±1.
    solver : for the convex problems.
    rule : the switches to start from, and how far they may be left.
    index : number of the class of every sample.
    """

    problem: Problem
    solver: Solver
    rule: SwitchRule
    index: Indices = field(repr=False)

    def at(self, rows: Indices) -> SwitchProblem:
        """Return the problems on some of the samples."""
        problem, rule = self.problem, self.rule
        weight = None if problem.weight is None else problem.weight[rows]
        some = replace(problem, grams=problem.grams.sample(rows), y=problem.y[rows], weight=weight)
        prior, available = rule.prior[rows], rule.available[rows]
        return replace(
            self, problem=some, rule=replace(rule, prior=prior, available=available), index=self.index[rows]
        )

    def learn(
        self, switches: Switches | None = None, progress: Progress | None = None
    ) -> list[LearntSwitches]:
        """Solve the problem of every class: with these switches, or with None while learning them."""
        rule = self.rule if switches is None else replace(self.rule, prior=switches, max_flips=0)
        columns = np.ascontiguousarray(self.problem.y.T)
        return [learn_switches(replace(self.problem, y=y), self.solver, rule, progress) for y in columns]

    def contributions(self, models: Sequence[LearntSwitches], rows: Indices) -> tuple[AnyArray, Vector]:
        """Return what every kernel adds to the scores of all samples, (n, columns, M), and the intercepts.

        The models are those of the columns, learnt from the samples ``rows`` alone.
        """
        n, M = self.rule.prior.shape
        parts, intercepts = np.empty((n, len(models), M)), np.empty(len(models))
        for c, model in enumerate(models):
            coef, local = np.zeros(n), np.ones((M, n))
            inner, local[:, rows] = model.result.inner, model.switches.T
            margin = float(inner.margin) or 1.0
            coef[rows] = inner.coef / margin
            grams = weighted_locally(self.problem.grams, local)
            parts[:, c] = (model.result.eta[:, None] * grams.column_weighted_matvecs(coef)).T
            intercepts[c] = float(inner.intercept) / margin
        return parts, intercepts


@dataclass(frozen=True)
class HeldOutComparison:
    """Samples held out that the switches classify right and plain MKL wrong (``wins``), and the reverse."""

    wins: int
    losses: int

    @property
    def favours_mkl(self) -> bool:
        """Whether the switches lose more samples than they win."""
        return self.losses > self.wins


def shared_switches(task: SwitchProblem, cv: int, n_threads: int = 1, stop: Event | None = None) -> Switches:
    """Return switches (n, M) for all classes, by the margins that every sample has while it is held out."""
    n, M = task.rule.prior.shape
    columns = task.problem.y.shape[1]
    parts, intercepts = np.empty((n, columns, M)), np.empty((n, columns))

    def hold_out(fold: Fold, stop: Event) -> None:
        train, test = fold
        some = task.at(train)
        models = some.learn(some.rule.prior, raising_when_stopped(stop, None))
        found, b = task.contributions(models, train)
        parts[test], intercepts[test] = found[test], b

    folds = stratified_folds(cv, task.index)
    interruptible([partial(hold_out, fold) for fold in folds], n_threads, stop)
    return margin_switches(parts, intercepts, task.index, task.rule)


def margin_switches(parts: AnyArray, intercepts: Matrix, index: Indices, rule: SwitchRule) -> Switches:
    """Return the prior without the kernels that pull a sample to another class.

    Parameters
    ----------
    parts : array of shape (n, columns, M), what every kernel adds to the scores; one column for two classes.
    intercepts : array of shape (n, columns).
    index : number of the class of every sample.
    rule : the prior, the kernels that samples have, and the most switches that may depart from the prior.

    Notes
    -----
    Where the score of a sample's class leads that of the best other class by less than 1, the kernel is dropped
    without which it leads most, while there is one and as often as ``max_flips`` allows. A sample keeps a
    kernel that adds to some score.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.adaptive.held_out import margin_switches
    >>> from kernelweave.adaptive.switches import SwitchRule
    >>> on = np.ones((1, 3), dtype=bool)
    >>> parts = np.array([[[0.5, -1.0, 0.2]]])
    >>> margin_switches(parts, np.zeros((1, 1)), np.array([1]), SwitchRule(on, 2, on))
    array([[ True, False,  True]])

    """
    if parts.shape[1] == 1:  # f is the lead of the second class
        parts = np.concatenate([-0.5 * parts, 0.5 * parts], axis=1)
        intercepts = np.concatenate([-0.5 * intercepts, 0.5 * intercepts], axis=1)
    switches = rule.prior & rule.available
    n, columns, M = parts.shape
    for rows in gen_batches(n, max(1, 4_000_000 // (columns * M))):  # near 32 MB at a time
        switches[rows] = _dropped(parts[rows], intercepts[rows], index[rows], switches[rows], rule.max_flips)
    return switches


def _dropped(parts: AnyArray, intercepts: Matrix, index: Indices, on: Switches, max_flips: int) -> Switches:
    """Drop kernels one by one from the switches of some samples."""
    on, every = on.copy(), np.arange(len(on))
    size = np.abs(parts).sum(axis=1)
    for _ in range(max_flips):
        scores = np.einsum("icm,im->ic", parts, on) + intercepts
        lead = _leads(scores[:, :, None], index)[:, 0]
        leads = _leads(scores[:, :, None] - parts, index)
        left = (size * on).sum(axis=1, keepdims=True) - size
        leads[~on | (left <= 1e-9 * size.sum(axis=1, keepdims=True))] = -np.inf
        best = leads.argmax(axis=1)
        gains = (lead < 1.0) & (leads[every, best] > lead + 1e-9 * np.abs(lead))
        if not gains.any():
            break
        on[every[gains], best[gains]] = False
    return on


def _leads(scores: AnyArray, index: Indices) -> Matrix:
    """Return by how much the score of its class leads that of the best other class, of scores (n, C, ...)."""
    every = np.arange(len(index))
    own = scores[every, index]
    others = scores.copy()
    others[every, index] = -np.inf
    return np.asarray(own - others.max(axis=1))


def compare_with_mkl(
    task: SwitchProblem,
    learn: Callable[[SwitchProblem, Event], tuple[list[LearntSwitches], list[Switches]]],
    cv: int,
    n_threads: int = 1,
    stop: Event | None = None,
) -> HeldOutComparison:
    """Compare switches with all kernels of the prior on, on samples held out from both.

    ``learn`` returns the models of all columns, and the patterns that new samples choose from.
    """

    def hold_out(fold: Fold, stop: Event) -> tuple[int, int]:
        train, test = fold
        some = task.at(train)
        switched, patterns = learn(some, stop)
        plain = some.learn(some.rule.prior, raising_when_stopped(stop, None))
        prior = [distinct_patterns(some.rule.prior | ~some.rule.available)[0]] * len(plain)
        right = [
            predicted_index(*task.contributions(models, train), among, test) == task.index[test]
            for models, among in ((switched, patterns), (plain, prior))
        ]
        return int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())

    folds = stratified_folds(cv, task.index)
    counts = interruptible([partial(hold_out, fold) for fold in folds], n_threads, stop)
    return HeldOutComparison(*(sum(column) for column in zip(*counts, strict=True)))


def predicted_index(
    parts: AnyArray, intercepts: Vector, patterns: Sequence[Switches], rows: Indices
) -> Indices:
    """Return the number of the class predicted for some samples, each with the pattern that suits it."""
    binary = len(patterns) == 1
    scores = [
        best_patterns(parts[rows, c], float(intercepts[c]), among, signed=binary)[0]
        for c, among in enumerate(patterns)
    ]
    return np.asarray(scores[0] > 0.0 if binary else np.argmax(scores, axis=0)).astype(np.intp)
