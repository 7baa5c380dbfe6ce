"""Each sample its own kernels: the sample-adaptive MKL classifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from threading import Event
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Matrix
from kernelweave.adaptive.local_grams import as_weightable
from kernelweave.adaptive.switches import (
    LearntSwitches,
    Switches,
    SwitchRule,
    best_patterns,
    distinct_patterns,
    label_correlations,
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
from kernelweave.estimators.validation import check_count, check_input
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
    prior : array of shape (M,) or (n, M), "support" or None, default=None
        h_0; None is all on, "support" the kernels that a first fit on the simplex uses.
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
    Eq. (17), (18)] for new samples. The certificate proves the weights and the classifier for the given
    switches; nothing is proved about the switches, whose problem is not convex.
    Prediction takes the pattern of the training samples with the largest |f(x)|. That drops
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

    defaults_without_bank: ClassVar[dict[str, Callable[[], Any]]] = {}
    multiclass = "per_class"
    dtype = "float64"

    bank: Any = None
    _: KW_ONLY
    learner: Any = None
    geometry: Any = None
    max_flips: int | None = None
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
        binary = self.classes_.size == 2
        for c, patterns in enumerate([self.patterns_] if binary else self.patterns_):
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
        how: dict[str, Any] = {"unit_trace": self.unit_trace, "n_threads": effective_n_jobs(self.n_jobs)}
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
        return replace(policy, centre=False, dtype="float64", streams_from=None)

    def _solve_problem(
        self,
        task: FitTask,
        problem: Problem,
        start: WarmStart | None,
        progress: Progress | None,
        stop: Event,
    ) -> tuple[Result, GramStack, Any]:
        if self._has_nothing_to_switch(task.kernels):
            return super()._solve_problem(task, problem, start, progress, stop)
        problem = replace(problem, grams=as_weightable(problem.grams), y=np.ascontiguousarray(problem.y))
        report = raising_when_stopped(stop, progress)
        rule = self._switch_rule(problem, available_kernels(task.kernels), report)
        learnt = learn_switches(problem, self._solver(len(task.kernels)), rule, report)
        if learnt.stopped == "interrupted":
            stop.set()
        return learnt.result, task.grams, learnt

    def _switch_rule(self, problem: Problem, available: Switches, report: Progress) -> SwitchRule:
        if isinstance(self.prior, str):  # the kernels that a fit on the simplex uses
            all_on = SwitchRule(available, 0, available)
            on_simplex = replace(problem, geometry=Simplex())
            used = learn_switches(on_simplex, Newton(tol=self.tol), all_on, report).result.eta > 0.0
            prior = np.where((available & used).any(axis=1, keepdims=True), used, available)
        else:
            prior = as_switches(self.prior, *available.shape)
        require_a_kernel(prior & available)
        n_flips = as_flips(self.max_flips, problem.grams.n_kernels)
        return SwitchRule(prior, n_flips, available, self.scale_margins, self.max_rounds)

    def _set_fitted(self, task: FitTask, results: Sequence[FitResult]) -> None:
        super()._set_fitted(task, results)
        n, available = task.kernels.n_samples, available_kernels(task.kernels)
        learnt: list[LearntSwitches | None] = [one.details for one in results]
        switches = [available if one is None else one.switches for one in learnt]
        margins = [np.ones(n) if one is None else one.margins for one in learnt]
        rounds = [[] if one is None else list(one.rounds) for one in learnt]
        # A missing view was not switched off: that a training sample lacks it means nothing for new samples.
        as_chosen = [each | ~available for each in switches]
        patterns, counts = zip(*(distinct_patterns(each) for each in as_chosen), strict=True)
        binary = len(results) == 1
        self.switches_ = switches[0] if binary else np.array(switches)
        self.margins_ = margins[0] if binary else np.array(margins)
        self.patterns_ = patterns[0] if binary else list(patterns)
        self.pattern_counts_ = counts[0] if binary else list(counts)
        self.rounds_ = rounds[0] if binary else rounds
        self.cut_off_ = any(one is not None and one.stopped == "max_rounds" for one in learnt)
        correlations = [
            label_correlations(each, y) for each, y in zip(as_chosen, task.targets.values(), strict=True)
        ]
        self.association_ = max(correlations, key=lambda found: float(np.abs(found).max()))

    def _warn(self) -> None:
        """Warn where the rounds were cut off, or where the switches encode the label."""
        if self.cut_off_:
            warnings.warn(
                f"The switches still changed after max_rounds={self.max_rounds} rounds, the best of which is "
                "kept; raise max_rounds or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        strongest = int(np.abs(self.association_).argmax())
        correlation = abs(float(self.association_[strongest]))
        # A strong correlation, and n r² as chi-squared beyond chance: 20 is a probability below 1e-5.
        if correlation >= 0.5 and self.switches_.shape[-2] * correlation**2 >= 20.0:
            warnings.warn(
                f"The switches of kernel {self.kernel_names_[strongest]!r} encode the label (correlation "
                f"{correlation:.2f}): they are chosen knowing it, and new samples have none; lower "
                "max_flips, or use centre=True and MKLClassifier for comparison.",
                UserWarning,
                stacklevel=3,
            )


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
