"""Each sample its own kernels: the sample-adaptive MKL classifier."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Vector
from kernelweave.adaptive.initial_switches import as_switches, check_prior, flips, require_a_kernel
from kernelweave.adaptive.patterns import Patterns, association, decide
from kernelweave.adaptive.switch_descent import Adapted, Rule, adapt
from kernelweave.adaptive.switches import Switches
from kernelweave.bank.centred import CentredKernels
from kernelweave.bank.cross import contributions
from kernelweave.bank.protocol import FittedKernels
from kernelweave.errors import IncompatiblePartsError, IndefiniteKernelError
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.inputs import check_input
from kernelweave.estimators.interrupt import watching
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.parameters import check_count
from kernelweave.estimators.task import Setting, Solved, Start, Task
from kernelweave.estimators.training import hold
from kernelweave.geometry import Simplex
from kernelweave.gram import storage
from kernelweave.solvers import Newton, Problem, Progress

# A switch that is correlated this much with the label, by more than chance, tells the label.
TELLING, BEYOND_CHANCE = 0.5, 20.0


@dataclass(frozen=True)
class SolvedAdaptively(Solved):
    """One solved problem with its switches."""

    adapted: Adapted


class SampleAdaptiveMKLClassifier(MKLClassifier):
    r"""Multiple kernel learning in which every sample switches kernels off that do not help to classify it.

    .. math:: \min_{f, b, \eta \in \mathcal M, h} \sum_m \tfrac{\|f_m\|^2}{2\eta_m} + \sum_i C_i
       \max\bigl(0, 1 - \tfrac{y_i}{\tau_i}(\textstyle\sum_m h_{im} f_m(x_i) + b)\bigr),
       \quad h_i \in \{0, 1\}^M, \; \|h_i - h_0\|_1 \le m_0

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels; None is `KernelBank.distances()`. They are centred on the training samples.
    learner : Hinge, NuHinge, SquaredHinge or None, default=None
        The machine for fixed weights; None is ``Hinge(C=1.0)``.
    geometry : geometry or None, default=None
        The set of kernel weights; None is ``Simplex()``, the paper's; ``LpBall(2)`` often does better.
    max_flips : int or None, default=None
        m_0, the most kernels in which a sample may depart from the prior; None is a quarter of them, 0 is
        `MKLClassifier`.
    prior : array of shape (M,) or (n, M), "support" or None, default=None
        h_0; None is all on, "support" the kernels that a first fit on the simplex uses.
    scale_margins : bool, default=False
        Ask a sample for a margin τ_i in proportion to what its kernels carry, as the paper does. With learnt
        switches the objective may then rise and rounds may go in circles.
    centre : bool, default=True
        False leaves the kernels as they are: the switches then easily encode the label (a warning says so).
    unit_trace : bool, default=False
        Divide the centred kernels by their trace, as the paper does; C then has to grow with n.
    solver, tol, max_iter, class_weight, probability, memory_limit, n_jobs, random_state, verbose
        As in `MKLClassifier`.
    max_rounds : int, default=30
        Most rounds of weights and switches.

    Attributes
    ----------
    switches_ : bool array of shape (n, M); (classes, n, M) beyond two classes
    patterns_ : bool array of shape (P, M), the distinct switches, the most frequent first; a list per class
        beyond two. A missing view counts as on: it was not switched off
    pattern_counts_ : how many training samples have each pattern; a list per class beyond two
    margins_ : τ per training sample; (classes, n) beyond two classes
    rounds_ : list of rounds (certificate, switches that were off); a list per class beyond two
    certificate_ and others : as in `MKLClassifier`, for the switches as they are

    Notes
    -----
    [Liu14, Algorithm 1] with the switches of [Liu14, Eq. (15)] found exactly by sorting, and [Liu14,
    Eq. (17), (18)] for new samples. The certificate proves the weights and the machine for the given
    switches; nothing is proved about the switches, whose problem is not convex.
    Prediction chooses among the patterns of the training samples the one that speaks loudest. That drops
    kernels which dissent from the majority; it does not detect which kernel of a new sample is corrupted.
    What to expect: gains where training samples are corrupted in some of their kernels, a loss of a few
    points on clean data.
    Missing views (rows of NaN) are known switches: they stay off, ``max_flips`` counts further ones, and the
    statistics of a kernel are those of the samples that have it; see also ``scale_margins``.
    Symbols: paper γ → ``kernel_weights_``, h_i → ``switches_``, α∘y/τ → ``dual_coef_``, τ → ``margins_``.
    Differs from the paper: kernels are centred; τ ≡ 1 by default; the switches need no integer program; the
    best round is kept; any geometry and learner.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import KernelBank, SampleAdaptiveMKLClassifier, Views
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 30)
    >>> views = Views({name: rng.normal(size=(60, 4)) + 2.0 * y[:, None] for name in "abcd"})
    >>> model = SampleAdaptiveMKLClassifier(KernelBank.per_view(), max_flips=1).fit(views, y)
    >>> model.switches_.shape, bool((~model.switches_).sum(axis=1).max() <= 1)
    ((60, 4), True)

    """

    multiclass = "per_class"
    dtype = "float64"

    def __init__(
        self,
        bank: Any = None,
        *,
        learner: Any = None,
        geometry: Any = None,
        max_flips: int | None = None,
        prior: Any = None,
        scale_margins: bool = False,
        centre: bool = True,
        unit_trace: bool = False,
        solver: Any = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        max_rounds: int = 30,
        class_weight: Any = None,
        probability: bool = False,
        memory_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.bank = bank
        self.learner = learner
        self.geometry = geometry
        self.max_flips = max_flips
        self.prior = prior
        self.scale_margins = scale_margins
        self.centre = centre
        self.unit_trace = unit_trace
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_rounds = max_rounds
        self.class_weight = class_weight
        self.probability = probability
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn weights, machine and switches from samples X and their labels y."""
        super().fit(X, y, sample_weight)
        if not self.probability:
            self._warn()
        return self

    def decision_function(self, X: Any) -> AnyArray:
        """Return one signed score per sample, or per sample and class, with the pattern that suits it."""
        self._require_fit()
        values = np.column_stack([value for value, _ in self._decided(X)])
        return self._shaped(values)

    def kernel_use(self, X: Any) -> Switches:
        """Return which kernels the prediction of each sample rests on, of shape (rows, M).

        These are the kernels with weight that the sample has and that are on in the pattern chosen for it and
        its predicted class.
        """
        self._require_fit()
        decided = self._decided(X)
        seen = self.bank_.sees(check_input(self, X, reset=False)) if hasattr(self.bank_, "sees") else True
        winner = self.decision_function(X).argmax(axis=1) if len(decided) > 1 else None
        used = [
            table[chosen] & (weights > 0.0) & seen
            for (_, chosen), table, weights in zip(
                decided, self._each(self.patterns_), np.atleast_2d(self.kernel_weights_), strict=True
            )
        ]
        return used[0] if winner is None else np.array([used[c][i] for i, c in enumerate(winner)])

    def contributions(self, X: Any) -> AnyArray:
        """Return what every kernel says of each sample when it is on: (rows, M), or (rows, classes, M)."""
        self._require_fit()
        parts = self._contributions(X)
        return parts[:, 0] if self.classes_.size == 2 else parts

    def _kernel_parts(self, X: Any) -> AnyArray:
        pairs = zip(self._decided(X), self._each(self.patterns_), strict=True)
        on = np.stack([table[chosen] for (_, chosen), table in pairs], axis=1)
        return np.asarray(self._contributions(X) * on)

    def _decided(self, X: Any) -> list[tuple[Vector, AnyArray]]:
        parts, tables = self._contributions(X), self._each(self.patterns_)
        signed = len(tables) == 1
        return [
            decide(parts[:, c], float(self.intercept_[c]), table, signed=signed)
            for c, table in enumerate(tables)
        ]

    def _contributions(self, X: Any) -> AnyArray:
        X = check_input(self, X, reset=False)
        weights = np.atleast_2d(self.kernel_weights_)
        switches = self.switches_[None] if self.switches_.ndim == 2 else self.switches_
        on = switches[:, self.support_].transpose(0, 2, 1)
        coef = weights[:, :, None] * on * self.dual_coef_[:, None, :]
        # A view that a sample lacks is that of the mean of the training samples, which centring puts at zero.
        return contributions(self.bank_, X, coef, self.support_)

    def _each(self, value: Any) -> list[Any]:
        return [value] if self.classes_.size == 2 else value

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("max_rounds", self.max_rounds)
        check_prior(self.prior)
        if self.unit_trace and not self.centre:
            raise ValueError(
                "unit_trace=True divides the centred kernels by their traces and needs centre=True; "
                "for kernels as they are give the bank scaling=UnitTrace()."
            )
        if self.scale_margins and getattr(self.part("learner"), "degree", None) is None:
            raise IncompatiblePartsError(
                f"scale_margins=True needs a machine with margins of 1, such as Hinge() or SquaredHinge(); "
                f"got {self.part('learner')!r}."
            )

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> Setting:
        setting = super()._read(X, y, sample_weight)
        if self._is_plain(setting.fitted):
            return setting
        return replace(setting, fitted=self._centred(setting.fitted))

    def _is_plain(self, fitted: FittedKernels) -> bool:
        """Tell whether there is nothing to switch or to scale: then this is MKLClassifier."""
        n_flips = flips(self.max_flips, len(fitted))
        if isinstance(self.prior, str):
            return False
        prior = as_switches(self.prior, fitted.n_samples, len(fitted))
        margins = self.scale_margins and not _available(fitted).all()
        return n_flips == 0 and bool(prior.all()) and not self.unit_trace and not margins

    def _centred(self, fitted: FittedKernels) -> FittedKernels:
        """Return the kernels centred on the samples that have them; with missing views they are already."""
        done = getattr(fitted, "is_centred", False) and not self.unit_trace
        if done or not self.centre:
            return fitted
        how: dict[str, Any] = {"unit_trace": self.unit_trace, "n_threads": effective_n_jobs(self.n_jobs)}
        with blas_threads(1):
            return fitted.centred(**how) if hasattr(fitted, "centred") else CentredKernels(fitted, **how)

    def _store(self, setting: Setting, candidates: Sequence[MKLModel] = ()) -> Task:
        if self._is_plain(setting.fitted):
            return super()._store(setting, candidates)
        targets = self._problems(setting)
        kernels = hold(
            setting.fitted,
            centre=False,  # switched kernels do not forget their origin
            tol=self.tol,
            dtype="float64",
            memory_limit=self.memory_limit,
            n_threads=1 if len(targets) > 1 else effective_n_jobs(self.n_jobs),
        )
        return Task(kernels, targets, setting.weight, setting.classes)

    def _train(
        self, task: Task, y: AnyArray, near: Start | None, progress: Progress | None, stop: Event
    ) -> Solved:
        if self._is_plain(task.kernels.fitted):
            return super()._train(task, y, near, progress, stop)
        bank = task.kernels
        problem = Problem(
            bank.stack, np.ascontiguousarray(y), self.part("learner"), self.part("geometry"), task.weight
        )
        solver, report = self._solver(bank.n_kernels), watching(stop, progress)
        try:
            rule = self._rule(problem, _available(bank.fitted), report)
            adapted = adapt(problem, solver, rule, report)
        except IndefiniteKernelError as error:
            raise IndefiniteKernelError(error.index, error.energy, bank.names[error.index]) from None
        if adapted.stopped == "interrupted":
            stop.set()
        intercept = np.atleast_1d(adapted.result.machine.intercept)
        return SolvedAdaptively(adapted.result, intercept, storage(bank.stack), adapted)

    def _rule(self, problem: Problem, available: Switches, report: Progress) -> Rule:
        n_flips = flips(self.max_flips, problem.bank.n_kernels)
        if isinstance(self.prior, str):
            everything = Rule(available, 0, available)
            first = adapt(replace(problem, geometry=Simplex()), Newton(tol=self.tol), everything, report)
            used = first.result.eta > 0.0
            prior = np.where((available & used).any(axis=1, keepdims=True), used, available)
        else:
            prior = as_switches(self.prior, *available.shape)
        require_a_kernel(prior & available)
        return Rule(prior, n_flips, available, self.scale_margins, self.max_rounds)

    def _keep(self, task: Task, solved: list[Solved]) -> None:
        super()._keep(task, solved)
        n, available = task.kernels.n_samples, _available(task.kernels.fitted)
        adapted = [s.adapted if isinstance(s, SolvedAdaptively) else None for s in solved]
        switches = [available if a is None else a.switches for a in adapted]
        margins = [np.ones(n) if a is None else a.margins for a in adapted]
        # A view that a training sample does not have was not switched off: it says nothing of new samples.
        patterns = [Patterns.of(each | ~available) for each in switches]
        binary = len(solved) == 1
        self.switches_ = switches[0] if binary else np.array(switches)
        self.margins_ = margins[0] if binary else np.array(margins)
        self.patterns_ = patterns[0].table if binary else [each.table for each in patterns]
        self.pattern_counts_ = patterns[0].counts if binary else [each.counts for each in patterns]
        rounds = [[] if a is None else list(a.rounds) for a in adapted]
        self.rounds_ = rounds[0] if binary else rounds
        self.cut_off_ = any(a is not None and a.stopped == "max_rounds" for a in adapted)
        self.association_ = max(
            (
                association(each | ~available, y)
                for each, y in zip(switches, task.targets.values(), strict=True)
            ),
            key=lambda found: float(np.abs(found).max()),
        )

    def _warn(self) -> None:
        """Say so when the rounds were cut off, or when the switches tell the label."""
        if self.cut_off_:
            warnings.warn(
                f"The switches still changed after max_rounds={self.max_rounds} rounds, the best of which is "
                "kept; raise max_rounds or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        strongest = int(np.abs(self.association_).argmax())
        size = abs(float(self.association_[strongest]))
        if size >= TELLING and self.switches_.shape[-2] * size**2 >= BEYOND_CHANCE:
            warnings.warn(
                f"The switches of kernel {self.kernel_names_[strongest]!r} tell the label (correlation "
                f"{size:.2f}): they are chosen knowing it, and new samples are not; lower max_flips, or use "
                "centre=True and MKLClassifier for comparison.",
                UserWarning,
                stacklevel=3,
            )


def _available(fitted: FittedKernels) -> Switches:
    """Return which kernels every training sample has."""
    everything = np.ones((fitted.n_samples, len(fitted)), dtype=bool)
    return np.asarray(getattr(fitted, "available", everything))
