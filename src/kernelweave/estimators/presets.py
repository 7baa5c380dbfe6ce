"""The published methods by name: an `MKLClassifier` with the paper's geometry, or an estimator of its own.

Presets of `MKLClassifier` take a bank, ``C`` of the hinge machine, and any other of its parameters.
"""

from __future__ import annotations

from typing import Any

from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.fisher import FisherMKLClassifier
from kernelweave.estimators.localized import LocalizedMKLClassifier
from kernelweave.estimators.obscure import ObscureClassifier
from kernelweave.estimators.sample_adaptive import SampleAdaptiveMKLClassifier
from kernelweave.estimators.semi_supervised import SemiSupervisedMKLClassifier
from kernelweave.estimators.svm_2k import SVM2K
from kernelweave.estimators.svm_plus import SVMPlusClassifier
from kernelweave.geometry import BoxSimplex, ElasticNetBall, LpBall, RidgeSimplex, Simplex, Uniform
from kernelweave.learners import Hinge
from kernelweave.solvers import CuttingPlane, OnlineBatch


def simple_mkl(bank: Any = None, *, C: float = 1.0, **params: Any) -> MKLClassifier:
    """L1MKL [Rakotomamonjy08; Xu13, Eq. (5)]: weights on the simplex, few kernels selected.

    >>> from kernelweave import presets
    >>> presets.simple_mkl(C=10.0).geometry
    Simplex()
    """
    return MKLClassifier(bank, learner=Hinge(C=C), geometry=Simplex(), **params)


def silp(bank: Any = None, *, C: float = 1.0, **params: Any) -> MKLClassifier:
    """L1MKL solved by the semi-infinite linear program of [Sonnenburg06].

    >>> from kernelweave import presets
    >>> presets.silp().solver
    CuttingPlane(tol=None, max_iter=None)
    """
    return simple_mkl(bank, C=C, **{"solver": CuttingPlane(), **params})


def sm1_mkl(
    bank: Any = None, *, theta: float | None = None, nu: float | None = None, C: float = 1.0, **params: Any
) -> MKLClassifier:
    """SM1MKL [Xu13, Eq. (11)]: hinge loss on the kernel slacks, no weight above theta = 1/(nu M).

    >>> from kernelweave import presets
    >>> presets.sm1_mkl(theta=0.2).geometry
    BoxSimplex(theta=0.2, nu=None)
    """
    return MKLClassifier(bank, learner=Hinge(C=C), geometry=BoxSimplex(theta=theta, nu=nu), **params)


def sm2_mkl(bank: Any = None, *, theta: float = 1.0, C: float = 1.0, **params: Any) -> MKLClassifier:
    """SM2MKL [Xu13, Eq. (13)]: squared hinge loss on the kernel slacks, a ridge on the simplex.

    >>> from kernelweave import presets
    >>> presets.sm2_mkl(theta=10.0).geometry
    RidgeSimplex(theta=10.0)
    """
    return MKLClassifier(bank, learner=Hinge(C=C), geometry=RidgeSimplex(theta=theta), **params)


def lp_mkl(bank: Any = None, *, p: float = 2.0, C: float = 1.0, **params: Any) -> MKLClassifier:
    """LpMKL [Kloft11]: weights in the lp ball, from the simplex (p = 1) to the plain sum (p = inf).

    >>> from kernelweave import presets
    >>> presets.lp_mkl(p=4 / 3).geometry.p
    1.3333333333333333
    """
    return MKLClassifier(bank, learner=Hinge(C=C), geometry=LpBall(p=p), **params)


def l2_mkl(bank: Any = None, *, C: float = 1.0, **params: Any) -> MKLClassifier:
    """L2MKL, the square loss on the kernel slacks [Xu13, Eq. (16)].

    >>> from kernelweave import presets
    >>> presets.l2_mkl().geometry
    LpBall(p=2.0)
    """
    return lp_mkl(bank, p=2.0, C=C, **params)


def elastic_net_mkl(bank: Any = None, *, v: float = 0.5, C: float = 1.0, **params: Any) -> MKLClassifier:
    """SGMKL [Yang11]: weights in the elastic-net ball, v = 1 sparse, v = 0 the l2 ball.

    >>> from kernelweave import presets
    >>> presets.elastic_net_mkl(v=0.3).geometry
    ElasticNetBall(v=0.3)
    """
    return MKLClassifier(bank, learner=Hinge(C=C), geometry=ElasticNetBall(v=v), **params)


def average_kernel(bank: Any = None, *, C: float = 1.0, **params: Any) -> MKLClassifier:
    """AveKernel [Xu13, V-A]: every kernel counts 1/M; nothing is learnt about them.

    >>> from kernelweave import presets
    >>> presets.average_kernel().geometry
    Uniform()
    """
    return MKLClassifier(bank, learner=Hinge(C=C), geometry=Uniform(), **params)


def sum_kernel(bank: Any = None, *, C: float = 1.0, **params: Any) -> MKLClassifier:
    """The plain sum of kernels: every kernel counts 1, the limit p = inf of LpMKL.

    >>> from kernelweave import presets
    >>> presets.sum_kernel().geometry.p
    inf
    """
    return lp_mkl(bank, p=float("inf"), C=C, **params)


def mk_fda(bank: Any = None, *, p: float = 2.0, reg: float = 1e-4, **params: Any) -> FisherMKLClassifier:
    """MK-FDA [Yan09]: the kernel Fisher discriminant with weights in the lp ball; p = 1 is that of [Ye08].

    >>> from kernelweave import presets
    >>> presets.mk_fda(p=1.0).p
    1.0
    """
    return FisherMKLClassifier(bank, p=p, reg=reg, **params)


def sample_adaptive(
    bank: Any = None, *, max_flips: int | None = None, C: float = 100.0, **params: Any
) -> SampleAdaptiveMKLClassifier:
    """SAMKL [Liu14, Algorithm 1]: every sample switches up to ``max_flips`` kernels off.

    Kernels are centred and divided by their trace, as in the paper (which does not centre): their entries are
    of size 1/n, hence the larger C. ``scale_margins=True`` is the paper's tau.

    >>> from kernelweave import presets
    >>> presets.sample_adaptive(max_flips=3).unit_trace
    True
    """
    given = {"geometry": Simplex(), "unit_trace": True, **params}
    return SampleAdaptiveMKLClassifier(bank, learner=Hinge(C=C), max_flips=max_flips, **given)


def localized_mkl(bank: Any = None, *, C: float = 1.0, **params: Any) -> LocalizedMKLClassifier:
    """LMKL [Gonen08]: kernel weights are a softmax of linear functions of the sample.

    >>> from kernelweave import presets
    >>> presets.localized_mkl(C=10.0).learner.C
    10.0
    """
    return LocalizedMKLClassifier(bank, learner=Hinge(C=C), **params)


def svm_plus(kernel: Any = None, *, C: float = 1.0, lam: float = 1.0, **params: Any) -> SVMPlusClassifier:
    """SVM+ [Vapnik09; Xu14, Eq. (2.25)]: slacks are a function of privileged features.

    >>> from kernelweave import presets
    >>> presets.svm_plus(lam=0.1).lam
    0.1
    """
    return SVMPlusClassifier(kernel=kernel, C=C, lam=lam, **params)


def svm_2k(bank: Any = None, *, C: float = 1.0, D: float = 1.0, **params: Any) -> SVM2K:
    """SVM-2K [Farquhar06; Xu14, Eq. (2.22)]: one machine per view, a price D on their disagreement.

    >>> from kernelweave import presets
    >>> presets.svm_2k(D=0.1).D
    0.1
    """
    return SVM2K(bank, C=C, D=D, **params)


def iokl(bank: Any = None, *, theta: float | None = 1.2, **params: Any) -> SemiSupervisedMKLClassifier:
    """IOKL-SM [Xu14, Eq. (4.9), Algorithm 3] with the cap theta / T, and IOKL-HM for theta=None.

    >>> from kernelweave import presets
    >>> presets.iokl(theta=None).theta is None
    True
    """
    return SemiSupervisedMKLClassifier(bank, theta=theta, **params)


def obscure(bank: Any = None, *, p: float = 1.1, C: float = 1.0, **params: Any) -> ObscureClassifier:
    """OBSCURE [Orabona10]: multiclass p-norm MKL by its online and batch stages.

    >>> from kernelweave import presets
    >>> presets.obscure(p=1.25).solver.eta
    2.0
    """
    return ObscureClassifier(bank, p=p, C=C, **{"solver": OnlineBatch(), **params})
