"""Each sample its own kernels: the sample-adaptive MKL classifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from numbers import Integral
from threading import Event
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kernelweave._threads import blas_threads, threads_for
from kernelweave._typing import AnyArray, Indices, Matrix
from kernelweave.adaptive.held_out import (
    HeldOutComparison,
    SwitchProblem,
    compare_with_mkl,
    shared_switches,
)
from kernelweave.adaptive.local_grams import as_weightable
from kernelweave.adaptive.switches import (
    LearntSwitches,
    Switches,
    SwitchRule,
    best_patterns,
    distinct_patterns,
    label_association,
    learn_switches,
)
from kernelweave.bank.cross import contributions, in_slices
from kernelweave.bank.missing_views import accepting_missing_views
from kernelweave.bank.protocol import FittedKernels
from kernelweave.bank.scaled import RescaledKernels
from kernelweave.errors import IncompatiblePartsError
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.progress import raising_when_stopped
from kernelweave.estimators.training import FitResult, FitTask, TrainingData
from kernelweave.estimators.validation import check_choice, check_count, check_input
from kernelweave.geometry import Simplex
from kernelweave.gram import GramStack, StoragePolicy
from kernelweave.kernels import Centering, UnitTrace
from kernelweave.solvers import Newton, Problem, Progress, Result, WarmStart


@dataclass(eq=False, repr=False)
class SampleAdaptiveMKLClassifier(MKLClassifier):
    r"""Multiple kernel learning in which every sample switches kernels off that do not help to classify it.

    .. math:: \min_{f, b, \eta \in \mathcal M, h} \sum_m \tfrac{\|f_m\|^2}{2\eta_m} + \sum_i C_i
       \max\bigl(0, 1 - \tfrac{y_i}{\tau_i}(\textstyle\sum_m h_{im} f_m(x_i) + b)\bigr),
       \quad h_i \in \{0, 1\}^M, \; \|h_i - h_0\|_1 \le m_0

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        The kernels; None is `KernelBank.default()`. They are centred on the training samples.
    learner : Hinge, NuHinge, SquaredHinge or None, default=None
        The classifier for fixed weights; None is ``Hinge(C=1.0)``.
    geometry : geometry or None, default=None
        The set of kernel weights; None is ``Simplex()``, the paper's; ``LpBall(2)`` often does better.
    max_flips : int or None, default=None
        m_0, the most kernels in which a sample may depart from the prior; None is a quarter of them, 0 is
        `MKLClassifier`.
    switching : {"margin", "fewest"}, default="margin"
        How switches are chosen. "margin": by the margin of a sample while it is held out, one set of switches for
        all classes. "fewest": the paper's, as few kernels as the present margin needs, knowing the label, one set
        per class beyond two; there it often tells the class, with a warning.
    fallback : bool, default=True
        Keep the switches only where they win against all kernels on held-out samples; else fit as
        `MKLClassifier` does, with a warning and ``fell_back_``. False keeps them in any case.
    cv : int, default=5
        Folds in which samples are held out; fewer where a class is too small.
    prior : array of shape (M,) or (n, M), "support" or None, default=None
        h_0; None is all on, "support" the kernels that first fits on the simplex use, for any class.
    scale_margins : bool, default=False
        Require of a sample a margin τ_i in proportion to the norms of its kernels, as the paper does. With
        learnt switches the objective may then rise and rounds may go in circles.
    centre : bool, default=True
        False leaves the kernels as they are: the switches then easily encode the label (with a warning).
    unit_trace : bool, default=False
        Divide the centred kernels by their trace, as the paper does; C then has to grow with n.
    solver, tol, max_iter, class_weight, probability, memory_limit, n_jobs, random_state, verbose
        As in `MKLClassifier`.
    max_rounds : int, default=30
        Most rounds of weights and switches.

    Attributes
    ----------
    fell_back_ : bool, whether the switches were left out because they lose against all kernels
    comparison_ : (wins, losses), the held-out samples that only the switches, or only MKL, get right; None where
        nothing was compared
    association_ : how much of a class's variance the switches explain, 0 to 1
    switches_ : bool array of shape (n, M); (classes, n, M) beyond two classes with "fewest"
    patterns_ : bool array of shape (P, M), the switches new samples choose from, the most frequent first: those
        of the prior with "margin", of all training samples with "fewest", and then a list per class beyond two.
        A missing view counts as on: it was not switched off
    pattern_counts_ : how many training samples have each pattern; a list where there is a list of patterns
    margins_ : τ per training sample; (classes, n) beyond two classes
    rounds_ : list of rounds (certificate, switches that were off); a list per class beyond two
    certificate_ and others : as in `MKLClassifier`, for the switches as they are

    Notes
    -----
    ``switching="fewest"`` is [Liu14, Algorithm 1] with the switches of [Liu14, Eq. (15)] found exactly by
    sorting, and [Liu14, Eq. (17), (18)] for new samples: they take the pattern of the training samples with the
    largest |f(x)|, which drops kernels that dissent from the majority. Its switches are chosen to suit the label,
    and beyond two classes by every class for itself: they easily tell the class, and the fit collapses.
    ``"margin"``, the default, chooses them by models that have not seen the sample: where the score of its class
    leads by less than 1, the kernels are dropped without which it leads more. New samples use all kernels.
    The certificate proves the weights and the classifier for the given switches; nothing is proved about the
    switches, whose problem is not convex.
    What to expect: gains where training samples are corrupted in some of their kernels; nothing, or a fall back
    to MKL, on clean data. Kernels in the folds are scaled as on all training samples. A fit costs as much as 20 to
    30 of `MKLClassifier`, mostly for the comparison.
    Missing views (rows of NaN) are known switches: they stay off, ``max_flips`` counts further ones, and the
    statistics of a kernel are those of the samples that have it; see also ``scale_margins``.
    Symbols: paper γ → ``kernel_weights_``, h_i → ``switches_``, α∘y/τ → ``dual_coef_``, τ → ``margins_``.
    Differs from the paper: ``"margin"`` and ``fallback`` are not in it, ``presets.sample_adaptive`` has neither;
    kernels are centred; τ ≡ 1 by default; the switches need no integer program; the best round is kept; any
    geometry and learner.

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

    defaults_without_bank: ClassVar[dict[str, Callable[[], Any]]] = {}
    multiclass = "per_class"
    weighs_samples_alike: ClassVar[bool] = False
    takes_indicators: ClassVar[bool] = False
    dtype = "float64"

    bank: Any = None
    _: KW_ONLY
    learner: Any = None
    geometry: Any = None
    max_flips: int | None = None
    switching: str = "margin"
    fallback: bool = True
    cv: int = 5
    prior: Any = None
    scale_margins: bool = False
    centre: bool = True
    unit_trace: bool = False
    solver: Any = None
    tol: float = 1e-4
    max_iter: int | None = None
    max_rounds: int = 30
    class_weight: Any = None
    probability: bool = False
    memory_limit: float | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn weights, classifier and switches from samples X and their labels y."""
        super().fit(X, y, sample_weight)
        if not self.probability:  # with it, the fit inside the calibration has warned
            self._warn()
        return self

    def decision_function(self, X: Any) -> AnyArray:
        """Return one signed score per sample, or per sample and class, with the pattern that suits it."""
        self._require_fit()
        X = check_input(self, X, reset=False)
        n_results = 4 * self.dual_coef_.shape[0] * len(self.bank_)
        scores = in_slices(X, lambda rows: self._predict_with_patterns(rows)[1], n_results, self.bank_)
        return self._shaped(scores)

    def kernel_use(self, X: Any) -> Switches:
        """Return which kernels the prediction of each sample rests on, of shape (rows, M).

        These are the kernels with weight that the sample has and that are on in the pattern chosen for it and
        its predicted class.
        """
        self._require_fit()
        _, scores, on = self._predict_with_patterns(X)
        on &= np.atleast_2d(self.kernel_weights_) > 0.0
        if hasattr(self.bank_, "available_in"):
            on &= self.bank_.available_in(check_input(self, X, reset=False))[:, None]
        return np.asarray(on[np.arange(len(on)), scores.argmax(axis=1)])

    def contributions(self, X: Any) -> AnyArray:
        """Return what every kernel adds to f(x) when it is on: (rows, M), or (rows, classes, M)."""
        self._require_fit()
        parts = self._contributions(X)
        return parts[:, 0] if self.classes_.size == 2 else parts

    def _kernel_parts(self, X: Any) -> AnyArray:
        parts, _, on = self._predict_with_patterns(X)
        return np.asarray(parts * on)

    def _predict_with_patterns(self, X: Any) -> tuple[AnyArray, Matrix, AnyArray]:
        """Return contributions (rows, problems, M), scores (rows, problems), and the kernels that are on."""
        parts = self._contributions(X)
        scores, on = np.empty(parts.shape[:2]), np.empty(parts.shape, dtype=bool)
        binary, found = self.classes_.size == 2, self.patterns_
        for c, patterns in enumerate(found if isinstance(found, list) else [found] * parts.shape[1]):
            intercept = float(self.intercept_[c])
            scores[:, c], chosen = best_patterns(parts[:, c], intercept, patterns, signed=binary)
            on[:, c] = patterns[chosen]
        return parts, scores, on

    def _contributions(self, X: Any) -> AnyArray:
        X = check_input(self, X, reset=False)
        weights = np.atleast_2d(self.kernel_weights_)
        switches = self.switches_[None] if self.switches_.ndim == 2 else self.switches_
        on = switches[:, self.support_].transpose(0, 2, 1)
        coef = weights[:, :, None] * on * self.dual_coef_[:, None, :]
        # A missing view of X adds nothing: its sample is put at the mean, which centring made the origin.
        return contributions(self.bank_, X, coef, self.support_, self._n_threads)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("max_rounds", self.max_rounds)
        check_count("cv", self.cv, least=2)
        check_choice("switching", self.switching, ("margin", "fewest"))
        if isinstance(self.prior, str) and self.prior != "support":
            raise ValueError(
                f"prior must be None (all kernels on), 'support' or an array of 0 and 1; got {self.prior!r}."
            )
        if self.unit_trace and not self.centre:
            raise ValueError(
                "unit_trace=True divides the centred kernels by their traces and needs centre=True; "
                "for kernels as they are give the bank scaling=UnitTrace()."
            )
        if self.scale_margins and getattr(self._learner, "degree", None) is None:
            raise IncompatiblePartsError(
                f"scale_margins=True needs a learner with margins of 1, such as Hinge() or SquaredHinge(); "
                f"got {self._learner!r}."
            )

    def _has_nothing_to_switch(self, fitted: FittedKernels) -> bool:
        """Return whether there is nothing to switch or to scale: then the fit is that of `MKLClassifier`."""
        n_flips = as_flips(self.max_flips, len(fitted))
        if isinstance(self.prior, str):
            return False
        all_on = as_switches(self.prior, fitted.n_samples, len(fitted)).all()
        margins = self.scale_margins and not available_kernels(fitted).all()
        return n_flips == 0 and bool(all_on) and not self.unit_trace and not margins

    def _validate(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
        data = super()._validate(X, y, sample_weight)
        kernels = data.kernels
        is_centred = getattr(kernels, "is_centred", False) and not self.unit_trace  # with missing views it is
        if is_centred or not self.centre or self._has_nothing_to_switch(kernels):
            return data
        how: dict[str, Any] = {"unit_trace": self.unit_trace, "n_threads": threads_for(self.n_jobs)}
        with blas_threads(1):
            kernels = accepting_missing_views(kernels)
            if hasattr(kernels, "centred"):
                return replace(data, kernels=kernels.centred(**how))
            rules = (Centering(), UnitTrace()) if self.unit_trace else (Centering(),)
            return replace(data, kernels=RescaledKernels(kernels, rules, n_threads=how["n_threads"]))

    def _storage_policy(self, data: TrainingData, n_targets: int, n_candidates: int) -> StoragePolicy:
        policy = super()._storage_policy(data, n_targets, n_candidates)
        if self._has_nothing_to_switch(data.kernels):
            return policy
        # Switches move a sample to the origin, so the origin must be the user's: storage must not centre.
        return replace(policy, centre=False, dtype="float64", streams_from=None, stored_up_to=20_000)

    def _solve(
        self, task: FitTask, starts: Sequence[WarmStart] | None = None, stop: Event | None = None
    ) -> list[FitResult]:
        self.fell_back_ = False
        self.comparison_: HeldOutComparison | None = None
        if self._has_nothing_to_switch(task.kernels):
            return super()._solve(task, starts, stop)
        stop = Event() if stop is None else stop
        task = replace(task, grams=as_weightable(task.grams))
        with blas_threads(1):
            plan = self._plan(task, stop)
        return super()._solve(replace(task, data=replace(task.data, extra=plan)), starts, stop)

    def _solve_problem(
        self,
        task: FitTask,
        problem: Problem,
        start: WarmStart | None,
        progress: Progress | None,
        stop: Event,
    ) -> tuple[Result, GramStack, Any]:
        plan = task.data.extra
        if plan is None:
            return super()._solve_problem(task, problem, start, progress, stop)
        problem = replace(problem, y=np.ascontiguousarray(problem.y))
        report = raising_when_stopped(stop, progress)
        learnt = learn_switches(problem, self._solver(len(task.kernels)), plan.rule, report)
        if learnt.stopped == "interrupted":
            stop.set()
        return learnt.result, task.grams, FittedSwitches(learnt, plan.patterns)

    def _plan(self, task: FitTask, stop: Event) -> SwitchPlan:
        """Return what may be switched in the fit to all samples, after what was learnt from held-out ones."""
        Y = task.data.Y
        index = Y.argmax(axis=1) if Y.shape[1] > 1 else (Y[:, 0] > 0.0).astype(np.intp)
        problem = Problem(task.grams, Y, self._learner, self._geometry, task.data.weight)
        solver, available = self._solver(len(task.kernels)), available_kernels(task.kernels)
        n_flips = as_flips(self.max_flips, len(task.kernels))
        rule = SwitchRule(available, n_flips, available, self.scale_margins, self.max_rounds)
        switching = SwitchProblem(problem, solver, rule, index)
        report = raising_when_stopped(stop, None)
        try:
            switching = replace(switching, rule=replace(rule, prior=self._prior_of(switching, report)))
            return self._judged(switching, threads_for(self.n_jobs), stop)
        except KeyboardInterrupt:  # still solve once on all samples, so that there is a model
            stop.set()
            return SwitchPlan.without_flips(switching.rule)

    def _judged(self, switching: SwitchProblem, n_threads: int, stop: Event) -> SwitchPlan:
        """Return the plan, without any flip where that does no worse on samples held out."""
        rule = switching.rule
        plain = SwitchPlan.without_flips(rule)
        if rule.max_flips == 0:
            return plain
        if np.bincount(switching.index).min() < 2:  # nothing of that class can be held out
            self.fell_back_ = True
            return plain
        n_threads = n_threads if switching.problem.y.shape[1] > 1 else 1  # else passes have them
        if self.fallback:
            learn = partial(_learn_switched, self)
            compared = compare_with_mkl(switching, learn, self.cv, n_threads, stop)
            self.comparison_, self.fell_back_ = compared, compared.favours_mkl
        if self.fell_back_:
            return plain
        return self._planned(switching, n_threads, stop)

    def _planned(self, switching: SwitchProblem, n_threads: int, stop: Event) -> SwitchPlan:
        """Return the plan that ``switching`` asks for."""
        if self.switching == "fewest":
            return SwitchPlan(switching.rule, None)
        shared = shared_switches(switching, self.cv, n_threads, stop)
        plain = SwitchPlan.without_flips(switching.rule)
        return replace(plain, rule=replace(plain.rule, prior=shared))

    def _prior_of(self, switching: SwitchProblem, report: Progress) -> Switches:
        """Return h_0 of every sample."""
        available = switching.rule.available
        if isinstance(self.prior, str):  # the kernels that fits on the simplex use
            on_simplex = replace(switching.problem, geometry=Simplex())
            fits = replace(switching, problem=on_simplex, solver=Newton(tol=self.tol))
            used = np.any([one.result.eta > 0.0 for one in fits.learn(available, report)], axis=0)
            prior = np.where((available & used).any(axis=1, keepdims=True), used, available)
        else:
            prior = as_switches(self.prior, *available.shape)
        require_a_kernel(prior & available)
        return prior

    def _set_fitted(self, task: FitTask, results: Sequence[FitResult]) -> None:
        super()._set_fitted(task, results)
        n, available = task.kernels.n_samples, available_kernels(task.kernels)
        fits: list[FittedSwitches | None] = [one.details for one in results]
        switches = [available if one is None else one.learnt.switches for one in fits]
        margins = [np.ones(n) if one is None else one.learnt.margins for one in fits]
        rounds = [[] if one is None else list(one.learnt.rounds) for one in fits]
        # A missing view was not switched off: that a training sample lacks it means nothing for new samples.
        as_chosen = [each | ~available for each in switches]
        found = [
            distinct_patterns(each) if one is None or one.patterns is None else one.patterns
            for one, each in zip(fits, as_chosen, strict=True)
        ]
        single = len(results) == 1
        shared = single or self.switching == "margin" or self.fell_back_
        self.switches_ = switches[0] if shared else np.array(switches)
        self.patterns_: Any = found[0][0] if shared else [patterns for patterns, _ in found]
        self.pattern_counts_ = found[0][1] if shared else [counts for _, counts in found]
        self.margins_ = margins[0] if single else np.array(margins)
        self.rounds_ = rounds[0] if single else rounds
        self.cut_off_ = any(one is not None and one.learnt.stopped == "max_rounds" for one in fits)
        targets = task.targets.values()
        pairs = zip(as_chosen, targets, strict=True)
        self.association_ = max(label_association(each, y) for each, y in pairs)

    def _warn(self) -> None:
        """Warn where the rounds were cut off, or where the switches encode the label."""
        if self.cut_off_:
            warnings.warn(
                f"The switches still changed after max_rounds={self.max_rounds} rounds, the best of which is "
                "kept; raise max_rounds or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        n = self.switches_.shape[-2]
        # Beyond what so few samples could show by chance: n R² is about chi-squared. Where switches were compared
        # on held-out samples it is known that they do no harm.
        if self.comparison_ is None and self.association_ >= 0.25 and n * self.association_ >= 20.0:
            warnings.warn(
                f"The switches tell the class: they explain {self.association_:.0%} of its variance. They are "
                "chosen knowing it, and new samples have none; lower max_flips, or use switching='margin', "
                "centre=True, and fallback=True, which keeps no switches that lose on held-out samples.",
                UserWarning,
                stacklevel=3,
            )
        if self.fell_back_:
            compared = self.comparison_
            why = (
                "a class has one sample, which cannot be held out"
                if compared is None
                else f"on held-out samples they are right {compared.wins} times where plain MKL is wrong, and "
                f"wrong {compared.losses} times where it is right"
            )
            warnings.warn(
                f"The switches were left out: {why}. The fit is that of MKLClassifier; fallback=False keeps them.",
                UserWarning,
                stacklevel=3,
            )


@dataclass(frozen=True)
class SwitchPlan:
    """What may be switched, and the patterns of new samples with their counts; None: those of the fit."""

    rule: SwitchRule
    patterns: tuple[Switches, Indices] | None

    @classmethod
    def without_flips(cls, rule: SwitchRule) -> SwitchPlan:
        """Return the plan that leaves the prior as it is."""
        return cls(replace(rule, max_flips=0), distinct_patterns(rule.prior | ~rule.available))


@dataclass(frozen=True)
class FittedSwitches:
    """What one problem has learnt, and its patterns as in `SwitchPlan`."""

    learnt: LearntSwitches = field(repr=False)
    patterns: tuple[Switches, Indices] | None


def _learn_switched(
    model: SampleAdaptiveMKLClassifier, switching: SwitchProblem, stop: Event
) -> tuple[list[LearntSwitches], list[Switches]]:
    """Learn as the model would; return the models of all columns and the patterns of new samples."""
    plan = model._planned(switching, 1, stop)
    learnt = replace(switching, rule=plan.rule).learn(progress=raising_when_stopped(stop, None))
    if plan.patterns is not None:
        return learnt, [plan.patterns[0]] * len(learnt)
    available = switching.rule.available
    return learnt, [distinct_patterns(one.switches | ~available)[0] for one in learnt]


def available_kernels(fitted: FittedKernels) -> Switches:
    """Return which kernels every training sample has, of shape (n, M)."""
    everything = np.ones((fitted.n_samples, len(fitted)), dtype=bool)
    return np.asarray(getattr(fitted, "available", everything))


def as_flips(max_flips: Any, n_kernels: int) -> int:
    """Return how many switches of a sample may depart from the prior; None is a quarter of the kernels."""
    if max_flips is None:
        return n_kernels // 4
    is_integer = isinstance(max_flips, Integral) and not isinstance(max_flips, bool)
    if not is_integer or not 0 <= int(max_flips) <= n_kernels:
        raise ValueError(
            f"max_flips must be None or a whole number from 0 to the number of kernels, here {n_kernels}; "
            f"got {max_flips!r}."
        )
    return int(max_flips)


def as_switches(prior: Any, n_samples: int, n_kernels: int) -> Switches:
    """Return a prior as one row of switches per sample; None is all on."""
    if prior is None:
        return np.ones((n_samples, n_kernels), dtype=bool)
    values: AnyArray = np.asarray(prior)
    if values.shape not in ((n_kernels,), (n_samples, n_kernels)):
        raise ValueError(
            f"prior must have one switch per kernel, shape ({n_kernels},), or one row of them per sample, "
            f"shape ({n_samples}, {n_kernels}); got shape {values.shape}."
        )
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        raise ValueError("prior must hold switches, True and False or 1 and 0; got other values.")
    switches = np.broadcast_to(values.astype(bool), (n_samples, n_kernels))
    require_a_kernel(switches)
    return switches


def require_a_kernel(switches: Switches) -> None:
    """Raise ValueError unless a prior leaves every sample something to start from."""
    without = np.flatnonzero(~switches.any(axis=1))
    if without.size:
        raise ValueError(
            f"prior must leave every sample at least one kernel; sample {without[0]} has none on"
            f"{f' (and {without.size - 1} more)' if without.size > 1 else ''}."
        )
