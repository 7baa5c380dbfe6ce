"""Baselines for bags, with many kernels: SIL, mi-SVM, MI-SVM and the normalised set kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from kernelweave._typing import AnyArray, Indices, Vector
from kernelweave.bank import KernelBank
from kernelweave.estimators.validation import check_part
from kernelweave.geometry import Geometry, LpBall
from kernelweave.gram import DenseGrams
from kernelweave.learners import Hinge
from kernelweave.solvers import Solver, WarmStart, solver_with_defaults
from kernelweave.weak_labels.ambiguity import consecutive_groups, means_matrix, mixed_kernel, selection_matrix
from kernelweave.weak_labels.base import restricted
from kernelweave.weak_labels.multi_instance import POOLS, BagClassifier, BagFit, BagProblem


@dataclass(frozen=True)
class MixtureTrainer:
    """Ordinary MKL with the hinge loss on samples that are mixtures of instances."""

    geometry: Geometry
    solver: Solver

    def train(
        self, stack: DenseGrams, A: sparse.csr_array, y: Vector, C: Vector, near: BagFit | None = None
    ) -> BagFit:
        """Train on samples made of instances by the rows of A, starting from the fit of a problem nearby.

        ``stack`` are the centred kernels of the samples, ``C`` their prices of a margin violation.
        """
        start = None if near is None else WarmStart(near.result.eta, near.result.inner.coef)
        result = self.solver.solve(stack, y, Hinge(C=1.0), self.geometry, weight=C, start=start)
        v = result.inner.coef
        coef = result.eta[:, None] * np.asarray(A.T @ v)
        intercept = float(result.inner.intercept - stack.offset(result.eta, v))
        return BagFit(coef, intercept, result, n_iter=result.n_iter)


def mixed_grams(problem: BagProblem, A: sparse.csr_array) -> DenseGrams:
    """Return the centred kernels of samples that are mixtures of instances, one row of A each."""
    return DenseGrams([mixed_kernel(A, K) for K in problem.grams], centre=True)


def train_set_kernel(trainer: MixtureTrainer, problem: BagProblem) -> BagFit:
    """Represent every bag by the mean of its instances: the set kernel divided by both sizes."""
    A = means_matrix(problem.members, problem.n_instances)
    return trainer.train(mixed_grams(problem, A), A, problem.signs, problem.C)


def train_instance_labels(trainer: MixtureTrainer, problem: BagProblem, max_rounds: int) -> BagFit:
    """Relabel the instances of positive bags by their values, at least one positive in each (mi-SVM).

    In the first round every instance has the label of its bag (SIL).
    """
    rows, sizes = problem.rows, problem.sizes
    bag_signs, C = np.repeat(problem.signs, sizes), np.repeat(problem.C, sizes)
    bags = consecutive_groups(sizes)
    positive_bags = [bags[bag] for bag in np.flatnonzero(problem.signs > 0)]
    A = selection_matrix(rows, problem.n_instances)
    stack = DenseGrams(restricted(problem.grams, rows), centre=True)

    def train(y: Vector, near: BagFit | None) -> BagFit:
        return trainer.train(stack, A, y, C, near)

    def relabel(fit: BagFit) -> Vector:
        values = fit.values(problem.grams)[rows]
        y = np.where((bag_signs > 0) & (values > 0.0), 1.0, -1.0)
        y[[bag[values[bag].argmax()] for bag in positive_bags]] = 1.0
        return y

    return _alternate(train, relabel, bag_signs, max_rounds)


def train_witnesses(trainer: MixtureTrainer, problem: BagProblem, max_rounds: int) -> BagFit:
    """Represent a positive bag by its highest instance, starting from its mean (MI-SVM)."""
    positive = problem.subset(np.flatnonzero(problem.signs > 0))
    negative = problem.subset(np.flatnonzero(problem.signs < 0))
    negative_instances = selection_matrix(negative.rows, problem.n_instances)
    y = np.concatenate([positive.signs, np.repeat(negative.signs, negative.sizes)])
    C = np.concatenate([positive.C, np.repeat(negative.C, negative.sizes)])

    def train(witnesses: Indices, near: BagFit | None) -> BagFit:
        if witnesses.size:
            positives = selection_matrix(witnesses, problem.n_instances)
        else:
            positives = means_matrix(positive.members, problem.n_instances)
        A = sparse.vstack([positives, negative_instances], format="csr")
        return trainer.train(mixed_grams(problem, A), A, y, C, near)

    def choose(fit: BagFit) -> Indices:
        values = fit.values(problem.grams)
        return np.array([bag[values[bag].argmax()] for bag in positive.members])

    return _alternate(train, choose, np.empty(0, dtype=np.intp), max_rounds)


def _alternate(
    train: Callable[[AnyArray, BagFit | None], BagFit],
    update: Callable[[BagFit], AnyArray],
    state: AnyArray,
    max_rounds: int,
) -> BagFit:
    """Train and update in turn, until a state comes back or the rounds are used up.

    The state is what is trained on: labels of instances, or witnesses. There are finitely many of them, so
    one has to come back; each training starts from the one before.
    """
    fits: list[BagFit] = []
    seen: set[bytes] = set()
    while len(fits) < max_rounds and state.tobytes() not in seen:
        fits.append(train(state, fits[-1] if fits else None))
        seen.add(state.tobytes())
        state = update(fits[-1])
    return replace(fits[-1], n_rounds=len(fits), n_iter=sum(fit.n_iter for fit in fits))


@dataclass(eq=False, repr=False, kw_only=True)
class BagBaseline(BagClassifier):
    r"""A classifier of bags that trains ordinary multiple kernel learning on instances or means of them.

    Parameters
    ----------
    bank : KernelBank or None, default=None
        Kernels of the instances, scaled as in `MultiInstanceMKLClassifier`; None is `KernelBank.default()`.
    C : float, default=1.0
        Price of a margin violation.
    geometry : geometry or None, default=None
        The set of kernel weights; None is ``LpBall(p=2)``.
    max_rounds : int, default=20
        Most rounds of training and of choosing labels or instances anew, where the method does so.
    threshold, cv, centering, class_weight, tol, max_iter, memory_limit, random_state, verbose : as in
        `MultiInstanceMKLClassifier`
    """

    defaults: ClassVar[dict[str, Callable[[], Any]]] = {"bank": KernelBank.default, "geometry": LpBall}

    geometry: Any = None
    max_rounds: int = 20

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_part("geometry", self.part("geometry"), Geometry, "LpBall(p=2)")

    def _trainer(self, problem: BagProblem) -> MixtureTrainer:
        geometry = self.part("geometry")
        solver = solver_with_defaults(None, geometry, len(problem.grams), self.tol, self.max_iter)
        return MixtureTrainer(geometry, solver)

    def _set_fit(self, fit: BagFit, signs: Vector, values: list[Vector]) -> None:
        super()._set_fit(fit, signs, values)
        self.kernel_weights_ = fit.result.eta
        self.n_rounds_ = fit.n_rounds


class SingleInstanceMKLClassifier(BagBaseline):
    r"""SIL: every instance takes the label of its bag; a bag is positive where its highest instance is.

    Parameters are those of `BagBaseline`.

    Notes
    -----
    The baseline of [Xu14, Sec. 4.5]. Differs from the paper: multiple kernels, threshold by cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import SingleInstanceMKLClassifier
    >>> bags = [np.array([[0.0], [i % 2]]) for i in range(12)]
    >>> SingleInstanceMKLClassifier().fit(bags, np.arange(12) % 2).predict(bags[:2])
    array([0, 1])

    """

    def _train(self, problem: BagProblem) -> BagFit:
        return train_instance_labels(self._trainer(problem), problem, max_rounds=1)


class InstanceLabelMKLClassifier(BagBaseline):
    r"""mi-SVM: instances of positive bags are relabelled by the SVM, at least one positive each.

    Parameters are those of `BagBaseline`.

    Notes
    -----
    [Andrews03], which [Xu14, Table 4.5] compares with. Differs from the paper: multiple kernels, threshold by
    cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import InstanceLabelMKLClassifier
    >>> bags = [np.array([[0.0], [i % 2]]) for i in range(12)]
    >>> InstanceLabelMKLClassifier().fit(bags, np.arange(12) % 2).predict(bags[:2])
    array([0, 1])

    """

    def _train(self, problem: BagProblem) -> BagFit:
        return train_instance_labels(self._trainer(problem), problem, self.max_rounds)


class WitnessMKLClassifier(BagBaseline):
    r"""MI-SVM: a positive bag is its highest instance, chosen anew by each SVM.

    Parameters are those of `BagBaseline`.

    Notes
    -----
    [Andrews03], which [Xu14, Table 4.5] compares with. Differs from the paper: multiple kernels, threshold by
    cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import WitnessMKLClassifier
    >>> bags = [np.array([[0.0], [i % 2]]) for i in range(12)]
    >>> WitnessMKLClassifier().fit(bags, np.arange(12) % 2).predict(bags[:2])
    array([0, 1])

    """

    def _train(self, problem: BagProblem) -> BagFit:
        return train_witnesses(self._trainer(problem), problem, self.max_rounds)


class SetKernelMKLClassifier(BagBaseline):
    r"""The normalised set kernel: a bag is the mean of its instances.

    Parameters are those of `BagBaseline`.

    Notes
    -----
    The MI-Kernel of [Gartner02] normalised by the sizes of the bags, which [Xu14, Table 4.5] compares with.
    Differs from the paper: multiple kernels, threshold by cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import SetKernelMKLClassifier
    >>> bags = [np.array([[0.0], [i % 2]]) for i in range(12)]
    >>> SetKernelMKLClassifier().fit(bags, np.arange(12) % 2).predict(bags[:2])
    array([0, 1])

    """

    def _train(self, problem: BagProblem) -> BagFit:
        return train_set_kernel(self._trainer(problem), problem)

    def pool(self, values: Vector) -> float:
        """Return the value of a bag from those of its instances: their mean."""
        return POOLS["mean"](values)
