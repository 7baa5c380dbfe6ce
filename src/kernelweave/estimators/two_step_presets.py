"""Published methods that weigh the kernels first, by name.

Each takes a bank, the parameter of its machine, and any other parameter of its estimator.
"""

from __future__ import annotations

from typing import Any

from kernelweave.estimators.aligned import AlignedMKLClassifier
from kernelweave.estimators.easy_mkl import EasyMKLClassifier
from kernelweave.estimators.heuristics import FHeuristicClassifier, PWMKClassifier
from kernelweave.estimators.lp_beta import LPBetaClassifier
from kernelweave.learners import Hinge


def alignf(bank: Any = None, *, C: float = 1.0, **params: Any) -> AlignedMKLClassifier:
    """ALIGNF [Cortes12; Xu14, Eq. (2.21)]: the combination with the largest centred alignment.

    >>> from kernelweave import presets
    >>> presets.alignf(C=10.0).criterion
    'alignf'
    """
    return AlignedMKLClassifier(bank, learner=Hinge(C=C), criterion="alignf", **params)


def align(bank: Any = None, *, C: float = 1.0, **params: Any) -> AlignedMKLClassifier:
    """ALIGN [Cortes12]: every kernel by its own centred alignment.

    >>> from kernelweave import presets
    >>> presets.align().criterion
    'align'
    """
    return AlignedMKLClassifier(bank, learner=Hinge(C=C), criterion="align", **params)


def kta(bank: Any = None, *, C: float = 1.0, **params: Any) -> AlignedMKLClassifier:
    """Kernel-target alignment [Cristianini01; Xu14, Eq. (2.19)], maximised without centring.

    >>> from kernelweave import presets
    >>> presets.kta().criterion
    'kta'
    """
    return AlignedMKLClassifier(bank, learner=Hinge(C=C), criterion="kta", **params)


def easy_mkl(bank: Any = None, *, lam: float = 0.1, **params: Any) -> EasyMKLClassifier:
    """EasyMKL [Aiolli15]: kernels by their share in the distance of the classes on the sum of all.

    >>> from kernelweave import presets
    >>> presets.easy_mkl(lam=0.5).lam
    0.5
    """
    return EasyMKLClassifier(bank, lam=lam, **params)


def f_heuristic(bank: Any = None, *, C: float = 1.0, **params: Any) -> FHeuristicClassifier:
    """FHeuristic [Qiu09]: every kernel by its own alignment, without centring.

    >>> from kernelweave import presets
    >>> presets.f_heuristic(C=10.0).learner
    Hinge(C=10.0, tol=None)
    """
    return FHeuristicClassifier(bank, learner=Hinge(C=C), **params)


def pwmk(bank: Any = None, *, delta: float = 0.4, C: float = 1.0, **params: Any) -> PWMKClassifier:
    """PWMK [Tanabe08]: every kernel by the accuracy it reaches alone.

    >>> from kernelweave import presets
    >>> presets.pwmk(delta=0.9).delta
    0.9
    """
    return PWMKClassifier(bank, learner=Hinge(C=C), delta=delta, **params)


def lp_beta(bank: Any = None, *, nu: float = 0.5, C: float = 1.0, **params: Any) -> LPBetaClassifier:
    """LP-β [Gehler09]: a machine on every kernel, mixed by a linear program with a soft margin.

    >>> from kernelweave import presets
    >>> presets.lp_beta(nu=0.2).nu
    0.2
    """
    return LPBetaClassifier(bank, learner=Hinge(C=C), nu=nu, **params)
