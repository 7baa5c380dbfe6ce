"""Baselines for bags, with many kernels and the same interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kernelweave._typing import Matrix, Vector
from kernelweave.bank import KernelBank
from kernelweave.estimators.parameters import check_part
from kernelweave.estimators.training import warn_if_open, with_defaults
from kernelweave.geometry import Geometry, LpBall
from kernelweave.learners import Hinge
from kernelweave.views.bags import Bags
from kernelweave.weak_labels import bag_machines
from kernelweave.weak_labels.bag_classifier import BagClassifier, Members
from kernelweave.weak_labels.bag_machines import BagFit, Trainer


@dataclass(eq=False, repr=False, kw_only=True)
class BagBaseline(BagClassifier):
    r"""A classifier of bags that trains ordinary MKL machines.

    Parameters
    ----------
    bank : KernelBank or None, default=None
        Kernels of the instances, scaled as in `MultiInstanceMKLClassifier`; None is `KernelBank.distances()`.
    C : float, default=1.0
        Price of a margin violation.
    geometry : geometry or None, default=None
        The set of kernel weights; None is ``LpBall(p=2)``.
    threshold, cv, centering, class_weight, tol, max_iter, memory_limit, random_state, verbose : as in
        `MultiInstanceMKLClassifier`; ``max_rounds`` caps the rounds of guessing.
    """

    defaults: ClassVar[dict[str, Callable[[], Any]]] = {"bank": KernelBank.distances, "geometry": LpBall}
    _machine: ClassVar[Callable[..., BagFit]]
    _guesses: ClassVar[bool] = False

    geometry: Any = None
    max_rounds: int = 20

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_part("geometry", self.part("geometry"), Geometry, "LpBall(p=2)")

    def _train(self, grams: list[Matrix], members: Members, signs: Vector, prices: Vector) -> BagFit:
        geometry = self.part("geometry")
        solver = with_defaults(None, geometry, len(grams), self.tol, self.max_iter)
        trainer = Trainer(Hinge(C=1.0), geometry, solver)
        rounds = {"max_rounds": self.max_rounds} if self._guesses else {}
        return type(self)._machine(trainer, grams, members, signs, prices, **rounds)

    def _keep_fit(self, fit: BagFit, bags: Bags, signs: Vector, values: Vector) -> None:
        super()._keep_fit(fit, bags, signs, values)
        self.kernel_weights_ = fit.result.eta
        self.n_rounds_ = fit.n_rounds
        warn_if_open([fit.result], self.tol)


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

    _machine = staticmethod(bag_machines.single_instance)


class InstanceLabelMKLClassifier(BagBaseline):
    r"""mi-SVM: labels of instances in positive bags are guessed by the machine, at least one positive each.

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

    _machine = staticmethod(bag_machines.guessed_labels)
    _guesses = True


class WitnessMKLClassifier(BagBaseline):
    r"""MI-SVM: a positive bag is its highest instance, guessed by the machine.

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

    _machine = staticmethod(bag_machines.guessed_witnesses)
    _guesses = True


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

    _machine = staticmethod(bag_machines.set_kernel)

    def pool(self, values: Vector) -> float:
        """Return the value of a bag from those of its instances: their mean."""
        return float(values.mean())
