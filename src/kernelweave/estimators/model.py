"""What all estimators share whose fit is one saddle point: learner × geometry × solver over a bank."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any, ClassVar, Self

import numpy as np

from kernelweave._threads import blas_threads, threads_for
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.missing_views import accepting_missing_views, fit_with_missing_views
from kernelweave.errors import IndefiniteKernelError
from kernelweave.estimators.base import KernelEstimator, reset
from kernelweave.estimators.by_column import ColumnEffects
from kernelweave.estimators.class_targets import is_multilabel
from kernelweave.estimators.column_notes import note_columns
from kernelweave.estimators.learnt_kernel import KernelFeatures
from kernelweave.estimators.progress import gap_bars, interruptible, raising_when_stopped
from kernelweave.estimators.training import (
    FitResult,
    FitTask,
    TrainingData,
    solve_and_certify,
    warn_if_open,
    with_inner_tol,
)
from kernelweave.estimators.validation import (
    as_bank,
    check_count,
    check_input,
    check_learner,
    check_number,
    check_part,
    require_same_rows,
)
from kernelweave.geometry import Geometry
from kernelweave.gram import GramStack, SolverSize, StoragePolicy, build_gram_stack
from kernelweave.solvers import (
    Problem,
    Progress,
    Result,
    Solver,
    WarmStart,
    solver_with_defaults,
    subsample_warm_start,
)
from kernelweave.solvers.warm_start import representative_rows

# A learner that chooses a parameter by the kernel looks at no more samples.
SAMPLES_TO_CHOOSE_BY = 500


class MKLModel(ColumnEffects, KernelFeatures, KernelEstimator):
    """An estimator over a bank that learns the kernel weights and the learner together.

    Subclasses say what y means (`_encode_targets`), which problems follow from it (`_problems`), and how
    predictions are made of decision values. They may choose other parts (`_learner`, `_geometry`) than their
    parameters.
    """

    learner_example: ClassVar[str] = "Hinge(C=1.0)"
    # What y is: "classes", "real" numbers, or "none".
    learns_from: ClassVar[str] = "classes"
    # How parameters begin that leave the stored kernels as they are: one set of matrices serves a whole path.
    path_params: ClassVar[tuple[str, ...]] = ("geometry__", "learner__")
    # Whether the weights solve one problem over weighted samples, so that a resample is the same with other weights.
    refits_on_resamples: ClassVar[bool] = True

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Check the data, store the kernels, solve every problem, set the learnt attributes."""
        reset(self)
        data = replace(self._validate(X, y, sample_weight), groups=groups)
        self._check_parts(data)
        task = self._build_grams(data)
        results = self._solve(task)
        self._set_fitted(task, results)
        note_columns(self, X, y)
        warn_if_open([r.result for r in results], self._solver(len(task.kernels)).gap_tol)
        return self

    # -- the steps

    def _check_parameters(self) -> None:
        check_number("tol", self.tol, above=0.0, below=1.0)
        check_count("max_iter", self.max_iter, optional=True)
        check_number("memory_limit", self.memory_limit, above=0.0, optional=True)
        check_learner(self._learner, self.learns_from, self.learner_example)
        check_part("geometry", self._geometry, Geometry, "Simplex()")
        check_part("solver", self.part("solver"), Solver, "Newton()")

    def _validate(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
        """Check the data and fit the bank: what depends on neither the learner nor the geometry."""
        require_same_rows(X, y)
        X = check_input(self, X, reset=True)
        bank = as_bank(self.part("bank"))
        kernels = fit_with_missing_views(bank, X) if self.accepts_missing_views else bank.fit(X)
        Y, weight, classes = self._encode_targets(y, sample_weight, kernels.n_samples)
        several = classes is not None and is_multilabel(y)
        return TrainingData(kernels, Y, weight, classes, multilabel=several)

    def _check_parts(self, data: TrainingData) -> None:
        """Check learner and geometry against the targets and the number of kernels."""
        for name, y in self._problems(data).items():
            for column in y.reshape(len(y), -1).T:
                self._learner.check(column, self._weight_of(data, name))
        self._geometry.check(len(data.kernels))

    def _build_grams(self, data: TrainingData, candidates: Sequence[MKLModel] = ()) -> FitTask:
        """Store the kernels, for this model or for all candidates that will be fitted on them."""
        targets = self._problems(data)
        policy = self._storage_policy(data, len(targets), max(len(candidates), 1))
        if not all(model._solver(len(data.kernels)).holds_all_kernels for model in candidates or [self]):
            policy = replace(policy, working_set=True)
        with blas_threads(1):
            grams = build_gram_stack(data.kernels, policy)
        return FitTask(data, grams, policy, targets)

    def _solve(
        self, task: FitTask, starts: Sequence[WarmStart] | None = None, stop: Event | None = None
    ) -> list[FitResult]:
        """Solve every problem of the task, each from its start if given, until done or told to stop."""
        each = [None] * len(task.targets) if starts is None else starts
        with gap_bars(self.verbose) as bar, blas_threads(1):
            jobs = [
                partial(self._solve_target, task, name, start, bar(name, self.tol))
                for name, start in zip(task.targets, each, strict=True)
            ]
            return interruptible(jobs, threads_for(self.n_jobs), stop)

    def _solve_target(
        self, task: FitTask, name: str, start: WarmStart | None, progress: Progress | None, stop: Event
    ) -> FitResult:
        """Solve and certify one problem; its intercept is that of the kernels as given, not as centred."""
        y, geometry = task.targets[name], self._geometry_of(task, name)
        learner = self._learner_of(task, y)
        learner = self._joint_learner(learner) if y.ndim == 2 else learner
        problem = Problem(task.grams, y, learner, geometry, self._weight_of(task.data, name))
        try:
            result, grams, details = self._solve_problem(task, problem, start, progress, stop)
        except IndefiniteKernelError as error:
            raise IndefiniteKernelError(error.index, error.energy, task.kernels.names[error.index]) from None
        if result.stopped == "interrupted":
            stop.set()
        inner = result.inner
        intercept = np.atleast_1d(inner.intercept - grams.offset(result.eta, inner.coef))
        return FitResult(result, intercept, grams.storage, problem, details)

    def _solve_problem(
        self,
        task: FitTask,
        problem: Problem,
        start: WarmStart | None,
        progress: Progress | None,
        stop: Event,
    ) -> tuple[Result, GramStack, Any]:
        """Return the result, the kernels it belongs to, and what else was learnt, here nothing."""
        solver = self._solver(len(task.kernels), streamed=task.needs_streamed_solver)
        if start is not None:
            problem = replace(problem, learner=with_inner_tol(problem.learner, solver.gap_tol))
        elif self._uses_subsample and not task.needs_streamed_solver:
            try:
                start = subsample_warm_start(problem, solver, raising_when_stopped(stop, None))
            except KeyboardInterrupt:  # still solve once on all samples, so that there is a model
                stop.set()
        watched = raising_when_stopped(stop, progress)
        return *solve_and_certify(task, problem, solver, start, watched), None

    def _set_fitted(self, task: FitTask, results: Sequence[FitResult]) -> None:
        """Set the learnt attributes from a solved task."""
        solved = [r.result for r in results]
        coef = np.column_stack([r.inner.coef for r in solved])
        unit = self._decision_unit(task, results)
        if task.data.classes is not None:
            self.classes_, self.multilabel_ = task.data.classes, task.data.multilabel
        kernels = task.kernels.for_prediction()
        self.bank_ = accepting_missing_views(kernels) if self.accepts_missing_views else kernels
        self.kernel_names_ = task.kernels.names
        self.storage_ = max((r.storage for r in results), key=lambda used: used.error)
        self.kernel_weights_ = solved[0].eta if len(solved) == 1 else np.array([r.eta for r in solved])
        self.support_ = np.flatnonzero(coef.any(axis=1))
        self.dual_coef_ = (coef[self.support_] / unit).T
        self.intercept_ = np.concatenate([r.intercept for r in results]) / unit
        self.n_support_ = self._count_support(task.data)
        self._set_certificates([r.certificate for r in solved], self._solver(len(task.kernels)).gap_tol)
        self.n_iter_ = max(r.n_iter for r in solved)
        histories = [list(r.history) for r in solved]
        self.history_ = histories[0] if len(solved) == 1 else histories

    @staticmethod
    def _decision_unit(task: FitTask, results: Sequence[FitResult]) -> Vector:
        """Return the size of decision values that is reported as 1, one entry per column of coefficients."""
        inner = [r.result.inner for r in results]
        # The ν forms learn the margin, and some learners report in other units; elsewhere both are 1.
        margin = np.concatenate([np.atleast_1d(one.margin) for one in inner])
        scale = np.concatenate([np.broadcast_to(one.scale, one.margin.shape).ravel() for one in inner])
        # A margin of nothing but rounding is no unit to measure decision values in.
        largest = max(float(np.abs(one.coef).sum(axis=0).max()) for one in inner)
        size = max(float(r.result.eta @ task.grams.sizes) for r in results)
        return np.asarray(np.where(margin > 1e-10 * largest * size, margin, 1.0) * scale)

    def _learner_of(self, task: FitTask, y: AnyArray) -> Any:
        """Return the learner with what it chooses by the mean kernel, of some samples if there are many."""
        learner = self._learner
        if not learner.reads_kernel:
            return learner
        rows = representative_rows(y, np.flatnonzero(task.data.weight), SAMPLES_TO_CHOOSE_BY)
        some, M = task.grams.sample(rows), len(task.kernels)
        return learner.for_kernel(some.combine(np.full(M, 1.0 / M)), y[rows], task.data.weight[rows])

    # -- what subclasses say

    @abstractmethod
    def _encode_targets(
        self, y: Any, sample_weight: Any, n_samples: int
    ) -> tuple[Matrix, Vector, AnyArray | None]:
        """Return the targets, one column each; the samples' weights; and the classes, if any."""

    def _problems(self, data: TrainingData) -> dict[str, AnyArray]:
        """Return one target per problem, by its name; several columns in one target share their weights."""
        return {"weights": data.Y if data.Y.shape[1] > 1 else data.Y[:, 0]}  # the title of its progress bar

    def _weight_of(self, data: TrainingData, name: str) -> Vector:  # noqa: ARG002 - some differ by problem
        """Return the weights of the samples in one problem; zero for those that have no part in it."""
        return data.weight

    def _count_support(self, data: TrainingData) -> AnyArray:  # noqa: ARG002 - classifiers count by class
        """Return the number of support vectors, as an array of one."""
        return np.array([self.support_.size])

    @property
    def _learner(self) -> Any:
        return self.part("learner")

    @property
    def _geometry(self) -> Any:
        return self.part("geometry")

    def _geometry_of(self, task: FitTask, name: str) -> Any:  # noqa: ARG002 - some differ by problem
        """Return the weight set of one problem."""
        return self._geometry

    def _storage_policy(self, data: TrainingData, n_targets: int, n_candidates: int) -> StoragePolicy:
        """Return what decides how the kernels are held for this many targets and candidate models."""
        n_jobs, joined = threads_for(self.n_jobs), n_targets == 1
        solver = SolverSize(
            matrices=self._learner.held_matrices,
            columns=data.Y.shape[1] if joined else 1,
            side_by_side=1 if joined else min(n_jobs, n_targets),
        )
        return StoragePolicy(
            centre=self._learner.has_bias,
            tol=min(self.tol, self._solver(len(data.kernels)).gap_tol),
            dtype=getattr(self, "dtype", "auto"),
            memory_limit=self.memory_limit,
            n_threads=n_jobs if joined else 1,  # classes run side by side
            several_problems=n_targets * n_candidates > 1,
            streams_from=self._streams_from,
            offers_features=hasattr(self, "features") and hasattr(self._learner, "elementwise"),
            solver=solver,
        )

    @property
    def _streams_from(self) -> int | None:
        """From how many samples on a fit does without a matrix of all samples; None where a solver is named."""
        return None if getattr(self, "solver", None) else self._learner.streams_from

    def _joint_learner(self, learner: Any) -> Any:
        """Return the learner of several columns that share their weights."""
        return learner.for_columns()

    def _solver(self, n_kernels: int, *, streamed: bool = False) -> Solver:
        return solver_with_defaults(
            self.solver, self._geometry, n_kernels, self.tol, self.max_iter, streamed=streamed
        )

    @property
    def _uses_subsample(self) -> bool:
        """Whether to look for a start on a subsample: a solver asked for by name starts as its paper does."""
        return getattr(self, "solver", None) is None

    def _copy_metadata(self, other: MKLModel) -> None:
        """Take over what another model learnt of the columns."""
        for name in ("n_features_in_", "feature_names_in_", "column_labels_"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))
