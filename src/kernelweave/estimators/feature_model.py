"""Estimators on explicit features in place of kernels: any number of samples, in memory, files or on a cluster."""

from __future__ import annotations

from threading import Event
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if

from kernelweave._threads import blas_threads, threads_for
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank.features import Features, FittedFeatures
from kernelweave.bank.fitted import FittedBank
from kernelweave.bank.missing_views import fit_with_missing_views, require_views
from kernelweave.bank.protocol import FittedKernels, n_rows
from kernelweave.errors import IncompatiblePartsError
from kernelweave.estimators.base import reset
from kernelweave.estimators.class_targets import is_multilabel
from kernelweave.estimators.column_notes import note_columns
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.on_features import OnFeatures
from kernelweave.estimators.progress import gap_bars, raising_when_stopped
from kernelweave.estimators.sample_blocks import (
    BatchBlocks,
    Survey,
    TableBlocks,
    TargetCode,
    current_client,
    on_cluster,
)
from kernelweave.estimators.training import stop_reason, warn_of_gap
from kernelweave.estimators.validation import (
    as_bank,
    check_input,
    check_part,
    checked_weights,
    is_precomputed,
    require_same_rows,
)
from kernelweave.gram import Storage, StreamedGrams
from kernelweave.solvers.feature_newton import (
    FeatureNewton,
    FeatureResult,
    first_weights,
    geometry_in_use,
    pass_dtype,
)
from kernelweave.solvers.feature_problem import FeaturePoint, FeatureProblem, SampleBlock, SampleBlocks
from kernelweave.solvers.feature_stream import StreamPoint
from kernelweave.views.batches import Batches, batches

# Widths of kernels are learnt, and landmarks drawn, from this many samples at most.
N_SAMPLE = 20_000
# Rows of a Dask collection that are read at a time.
ROWS_PER_BATCH = 65_536


def _has_features(estimator: Any) -> bool:
    """Tell whether a stream can be learnt from, or say what it takes."""
    if estimator.features is None:
        raise AttributeError("partial_fit needs explicit features: features=Landmarks(300).")
    return True


class FeatureModel(OnFeatures, MKLModel):
    """An estimator that may learn on explicit features (``features``) in place of its kernels.

    Everything but the widths of kernels and the landmarks is then learnt from samples in blocks. The model keeps the
    landmarks, and not the samples.
    """

    features: Any = None

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        if isinstance(X, Batches) or hasattr(X, "to_delayed"):
            raise ValueError(
                "Batches and Dask collections are learnt from through explicit features: set features=Landmarks(300), "
                "or pass one table."
            )
        return super()._fit(X, y, sample_weight, groups)

    def _fit_on_features(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn on features, from one table in memory or from batches."""
        self._check_features()
        if isinstance(X, Batches) and y is not None:
            raise ValueError(
                "Batches bring their targets: give those to batches(X, y), once, and not to fit."
            )
        if isinstance(X, Batches) or hasattr(X, "to_delayed"):
            if sample_weight is not None:
                raise ValueError("Samples in batches have no weights of their own; use class_weight.")
            return self._fit_on_batches(X, y)
        require_same_rows(X, y)
        reset(self)
        X = check_input(self, X, reset=True)
        n, rng = n_rows(X), self._generator()
        Y, weight, classes = self._encode_targets(y, sample_weight, n)
        survey = Survey(N_SAMPLE, rng)  # as in batches, so that the same samples are drawn
        survey.look(np.arange(n)[:, None], np.arange(n), classes=False)
        _, rows = survey.sample()
        n_threads, seed = threads_for(self.n_jobs), int(rng.integers(2**31))
        samples = TableBlocks(X, Y, weight, n_threads, seed)
        held = TableBlocks(_safe_indexing(X, rows), Y[rows], weight[rows], n_threads, seed)
        self._learn_features(samples, held, classes, int(rng.integers(2**31)))
        if classes is not None:
            self.multilabel_ = is_multilabel(y)
        note_columns(self, held.X, _safe_indexing(y, rows))
        return self

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _fit_on_batches(self, X: Any, y: Any) -> Self:
        """Learn from samples that are read for every pass, or that lie on the workers of a cluster."""
        reset(self)
        client = current_client() if hasattr(X, "to_delayed") else None
        batches_of = X if isinstance(X, Batches) else batches(X, y, size=ROWS_PER_BATCH)
        rng = self._generator()
        survey, bank = Survey(N_SAMPLE, rng), as_bank(self.part("bank"))
        for number, (rows, targets) in enumerate(batches_of):
            try:
                require_same_rows(rows, targets)
                rows = check_input(self, rows, reset=number == 0)
                require_views(bank, rows)
                survey.look(rows, targets, classes=self.learns_from == "classes")
            except (ValueError, TypeError) as error:
                raise type(error)(f"In batch {number}: {error}") from error
        if not survey.n_samples:
            raise ValueError("The batches hold no samples.")
        code = self._target_code(survey)
        held_X, held_y = survey.sample()
        n_threads = threads_for(self.n_jobs)
        held = TableBlocks(held_X, *code.encode(held_y, n_rows(held_X)), n_threads, int(rng.integers(2**31)))
        checker = column_checker(self)
        samples: SampleBlocks
        if client is None:
            samples = BatchBlocks(batches_of, code, survey.n_samples, checker, held, n_threads)
        else:
            samples = on_cluster(client, X, y, code, checker, survey.n_samples, held)
        self._learn_features(samples, held, code.classes, int(rng.integers(2**31)))
        note_columns(self, held_X, held_y)
        return self

    def _target_code(self, survey: Survey) -> TargetCode:  # noqa: ARG002 - numbers are as they are
        """Return how targets become columns; classes need all labels."""
        return TargetCode(None)

    def _learn_features(
        self, samples: SampleBlocks, held: TableBlocks, classes: AnyArray | None, seed: int
    ) -> None:
        """Learn from samples in blocks, some of which are held in memory."""
        self._require_elementwise(held)
        with blas_threads(1):
            kernels = self._fit_kernels(held.X)
            features = self.features.fit(kernels, held.X, np.random.default_rng(seed))
            results = self._solve_on_features(samples, held, kernels, features)
            self._set_fitted_on_features(held, kernels, features, classes, results)
        self.used_columns_ = tuple(kernels.columns)
        worst = max(results, key=lambda r: r.certificate.relative_gap)
        if worst.stopped != "converged":
            warn_of_gap(worst.certificate, self.tol, stop_reason(worst.stopped, worst.n_iter))

    def _solve_on_features(
        self, samples: Any, held: TableBlocks, kernels: FittedKernels, features: FittedFeatures
    ) -> list[FeatureResult]:
        solver = FeatureNewton(self.tol)
        if self.max_iter is not None:
            solver.max_iter = self.max_iter
        dtype = self._pass_dtype(samples.n_samples)
        results = []
        with gap_bars(self.verbose, "pass") as bar:
            for name, columns in self._columns_of_problems(held.n_targets).items():
                part = samples if columns is None else samples.with_columns(columns)
                few = held if columns is None else held.with_columns(columns)
                eta = self._first_weights(few, kernels)
                problem = FeatureProblem(part, features, self._elementwise_learner, self._geometry, dtype)
                results.append(solver.solve(problem, eta, raising_when_stopped(Event(), bar(name, self.tol))))
        return results

    def _pass_dtype(self, n_samples: int) -> str:
        return pass_dtype(self.tol, n_samples) if self.dtype == "auto" else str(self.dtype)

    def _first_weights(self, held: TableBlocks, kernels: FittedKernels) -> Vector:
        learner = self._joint_learner(self._learner) if held.n_targets > 1 else self._learner
        grams = StreamedGrams(kernels.sources(), len(kernels), kernels.n_samples)
        return first_weights(grams, held.Y, held.weight, learner, self._geometry)

    def _set_points(
        self, features: FittedFeatures, names: tuple[str, ...], points: list[FeaturePoint]
    ) -> None:
        """Set the weights, and the coefficients of raw features, from one point per problem."""
        weights = np.zeros((len(points), len(names)))
        coef: list[Matrix | None] = [None] * len(names)
        first = np.concatenate([[0], np.cumsum([point.bias.size for point in points])])
        for number, point in enumerate(points):
            weights[number, point.working] = point.eta
            for m, beta in zip(point.working.tolist(), point.beta(features), strict=True):
                if not beta.any():
                    continue
                whole = coef[m]
                if whole is None:
                    whole = coef[m] = np.zeros((beta.shape[0], first[-1]))
                whole[:, first[number] : first[number + 1]] = beta
        self.features_ = features
        self.feature_coef_ = coef
        self.kernel_names_ = names
        self.kernel_weights_ = weights[0] if len(points) == 1 else weights
        self.intercept_ = np.concatenate([point.bias for point in points])

    def _set_fitted_on_features(
        self,
        held: TableBlocks,
        kernels: FittedKernels,
        features: FittedFeatures,
        classes: AnyArray | None,
        results: list[FeatureResult],
    ) -> None:
        if classes is not None:
            self.classes_ = classes
        self._set_points(features, kernels.names, [r.point for r in results])
        self._set_certificates([r.certificate for r in results], self.tol)
        self.n_iter_ = max(r.n_iter for r in results)
        histories = [list(r.history) for r in results]
        self.history_ = histories[0] if len(results) == 1 else histories
        eta = np.atleast_2d(self.kernel_weights_).mean(axis=0)
        error = approximation_error(kernels, features, held, eta, centre=self._learner.has_bias)
        self.storage_ = Storage(
            f"{len(kernels)} kernels by {self.features!r}: approximate, and so is what the certificate speaks of; on "
            f"{min(500, held.n_samples)} samples the combined kernel differs by {error:.1%}",
            error,
        )

    # -- streams

    @available_if(_has_features)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch; a classifier has to be told all ``classes`` at the first one.

        The first batch fixes widths, landmarks and which kernels are in use. Of earlier batches a quadratic is kept
        in their place; there is no certificate. A batch with an error in it leaves the model as it was.
        """
        self._check_parameters()
        self._check_features()
        before = dict(vars(self))
        try:
            self._learn_batch(X, y, classes, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _learn_batch(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        require_same_rows(X, y)
        first = not hasattr(self, "streams_")
        if first:
            reset(self)
        X = check_input(self, X, reset=first)
        code = self._stream_code(classes)
        Y, weight = code.encode(y, n_rows(X))
        block = TableBlocks(X, Y, weight * checked_weights(sample_weight, Y))
        with blas_threads(1):
            if first:
                self._require_elementwise(block)
                kernels = self._fit_kernels(X)
                self.used_columns_ = tuple(kernels.columns)
                self.features_ = self.features.fit(kernels, X, self._generator())
                self.kernel_names_ = kernels.names
                self.streams_ = self._start_streams(block, kernels)
            problems = self._columns_of_problems(block.n_targets).values()
            parts = [block if columns is None else block.with_columns(columns) for columns in problems]
            dtype = self._pass_dtype(block.n_samples)
            geometry = geometry_in_use(self._geometry, len(self.kernel_names_))
            self.streams_ = [
                stream.after(
                    SampleBlock(part.X, part.Y, part.weight),
                    FeatureProblem(part, self.features_, self._elementwise_learner, geometry, dtype),
                )
                for stream, part in zip(self.streams_, parts, strict=True)
            ]
        self._set_points(self.features_, self.kernel_names_, [stream.point for stream in self.streams_])
        self.n_samples_seen_ = self.streams_[0].n_samples
        if first:
            note_columns(self, X, y)

    def _start_streams(self, block: TableBlocks, kernels: FittedKernels) -> list[StreamPoint]:
        """Return one stream per problem, with the kernels in use that the first batch asks for."""
        streams = []
        for columns in self._columns_of_problems(block.n_targets).values():
            part = block if columns is None else block.with_columns(columns)
            problem = FeatureProblem(part, self.features_, self._elementwise_learner, self._geometry)
            found = FeatureNewton(1e-2).solve(problem, self._first_weights(part, kernels))
            streams.append(StreamPoint.start(found.point))
        return streams

    def _stream_code(self, classes: Any) -> TargetCode:  # noqa: ARG002 - numbers have none
        """Return how the targets of a batch become columns."""
        return TargetCode(None)

    @property
    def _elementwise_learner(self) -> Any:
        if not hasattr(self._learner, "elementwise"):
            raise IncompatiblePartsError(
                f"{self._learner!r} cannot learn on features. Learners that can: Hinge, SquaredHinge, "
                "EpsilonInsensitive, Square."
            )
        return self._learner.for_kernel(None, np.empty(0), np.empty(0))

    # -- what subclasses say

    def _columns_of_problems(self, n_targets: int) -> dict[str, Indices | None]:  # noqa: ARG002
        """Return the columns of every problem by its name; None: all of them share their weights."""
        return {"weights": None}

    def _check_features(self) -> None:
        """Check what can be checked before any sample is read."""
        check_part("features", self.features, Features, "Landmarks(300)")
        if is_precomputed(self.bank):
            raise ValueError("Features need a bank that computes its kernels; got bank='precomputed'.")

    def _require_elementwise(self, held: TableBlocks) -> None:
        """Check that the parts fit together, on samples in memory."""
        for column in held.Y.T:
            self._learner.check(column, held.weight)
            self._elementwise_learner.elementwise(column, held.weight)

    def _fit_kernels(self, X: Any) -> FittedKernels:
        """Return the kernels, as learnt on these samples."""
        kernels = fit_with_missing_views(as_bank(self.part("bank")), X)
        self._geometry.check(len(kernels))
        if isinstance(kernels, FittedBank) and not self._learner.has_bias and kernels.is_shifted:
            raise IncompatiblePartsError(
                f"Features leave out the centring of kernels, which the intercept of a learner makes up for; "
                f"{self._learner!r} has none: give it one, or leave Centering out of the bank."
            )
        return kernels


def column_checker(estimator: Any) -> Any:
    """Return an estimator of the same bank that knows the columns, and nothing else."""
    checker = type(estimator)(bank=estimator.bank)
    for name in ("n_features_in_", "feature_names_in_", "column_labels_"):
        if hasattr(estimator, name):
            setattr(checker, name, getattr(estimator, name))
    return checker


def approximation_error(
    kernels: FittedKernels,
    features: FittedFeatures,
    held: TableBlocks,
    eta: Vector,
    *,
    centre: bool,
    n_rows: int = 500,
) -> float:
    """Return how far the combined kernel of features is from the exact one on some samples, of its own size.

    ``centre`` says that a learner has an intercept, to which both are the same when centred.
    """
    rows = np.unique(np.linspace(0, held.n_samples - 1, min(held.n_samples, n_rows)).astype(np.intp))
    used = np.flatnonzero(eta)
    X = _safe_indexing(held.X, rows)
    exact = approximate = np.zeros((rows.size, rows.size))
    found = dict(kernels.cross(X, used, rows))
    for m, R in zip(used.tolist(), features.raw(X, used.tolist()), strict=True):
        T = features.transforms[m]
        Phi = R if T is None else R @ T
        exact = exact + eta[m] * found[m]
        approximate = approximate + eta[m] * (Phi @ Phi.T)
    if centre:
        exact, approximate = _centred(exact), _centred(approximate)
    size = float(np.linalg.norm(exact))
    return float(np.linalg.norm(exact - approximate)) / size if size else 0.0


def _centred(K: Matrix) -> Matrix:
    return np.asarray(K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean())
