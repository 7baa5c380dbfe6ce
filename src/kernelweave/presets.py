"""The published methods by name: an `MKLClassifier` with the paper's geometry, or an estimator of its own.

Most take a bank, ``C`` of the hinge loss, and any other parameter of the estimator they make.
"""

from __future__ import annotations

from typing import Any

from kernelweave.adaptive import LocalizedMKLClassifier, SampleAdaptiveMKLClassifier
from kernelweave.baselines import (
    AlignedMKLClassifier,
    EasyMKLClassifier,
    FHeuristicClassifier,
    LPBetaClassifier,
    PWMKClassifier,
)
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.fisher import FisherMKLClassifier
from kernelweave.geometry import BoxSimplex, ElasticNetBall, LpBall, RidgeSimplex, Simplex, Uniform
from kernelweave.learners import Hinge
from kernelweave.metric import ITML, ITMLPlus, ITMLSelect
from kernelweave.multiclass import ObscureClassifier, OnlineBatch
from kernelweave.privileged.svm_2k import SVM2K
from kernelweave.privileged.svm_plus import SVMPlusClassifier
from kernelweave.solvers import CuttingPlane
from kernelweave.weak_labels.bag_baselines import (
    InstanceLabelMKLClassifier,
    SetKernelMKLClassifier,
    WitnessMKLClassifier,
)
from kernelweave.weak_labels.clusterer import MKLClusterer
from kernelweave.weak_labels.multi_instance import MultiInstanceMKLClassifier
from kernelweave.weak_labels.semi_supervised import SemiSupervisedMKLClassifier

__all__ = [
    "align",
    "alignf",
    "average_kernel",
    "easy_mkl",
    "elastic_net_mkl",
    "f_heuristic",
    "kta",
    "iokl",
    "iokl_bags",
    "iokl_clustering",
    "itml",
    "itml_plus",
    "itml_plus_hard",
    "itml_plus_thesis",
    "itml_s",
    "l2_mkl",
    "lp_beta",
    "lp_mkl",
    "mi_svm",
    "mk_fda",
    "pwmk",
    "localized_mkl",
    "sample_adaptive",
    "obscure",
    "set_kernel",
    "silp",
    "simple_mkl",
    "sm1_mkl",
    "sm2_mkl",
    "sum_kernel",
    "svm_2k",
    "svm_plus",
    "witness_mi_svm",
]


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
    """SAMKL [Liu14, Algorithm 1]: every sample switches up to ``max_flips`` kernels off, knowing its label.

    For two classes; beyond two, switches tell the class and the fit collapses, with a warning. The defaults of
    `SampleAdaptiveMKLClassifier` avoid that. Kernels are centred and divided by their trace, as in the paper (which
    does not centre): their entries are of size 1/n, hence the larger C. ``scale_margins=True`` is the paper's tau.

    >>> from kernelweave import presets
    >>> presets.sample_adaptive(max_flips=3).unit_trace
    True
    """
    given = {"geometry": Simplex(), "unit_trace": True, "switching": "fewest", "fallback": False, **params}
    return SampleAdaptiveMKLClassifier(bank, learner=Hinge(C=C), max_flips=max_flips, **given)


def localized_mkl(bank: Any = None, *, C: float = 1.0, **params: Any) -> LocalizedMKLClassifier:
    """LMKL [Gonen08]: kernel weights are a softmax of linear functions of the sample (or of Gaussians, by ``gating``).

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
    """SVM-2K [Farquhar06; Xu14, Eq. (2.22)]: one SVM per view, a price D on their disagreement.

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


def iokl_bags(bank: Any = None, *, theta: float | None = 1.2, **params: Any) -> MultiInstanceMKLClassifier:
    """IOKL for bags [Xu14, Sec. 4.5.3]: key instances, or labels of all instances with ambiguity="output".

    >>> from kernelweave import presets
    >>> presets.iokl_bags(ambiguity="output").theta
    1.2
    """
    return MultiInstanceMKLClassifier(bank, theta=theta, **params)


def iokl_clustering(bank: Any = None, *, theta: float | None = None, **params: Any) -> MKLClusterer:
    """Maximum-margin clustering by IOKL [Xu14, Ch. 4], where no label is known.

    >>> from kernelweave import presets
    >>> presets.iokl_clustering(balance=0.5).balance
    0.5
    """
    return MKLClusterer(bank, theta=theta, **params)


def mi_svm(bank: Any = None, *, C: float = 1.0, **params: Any) -> InstanceLabelMKLClassifier:
    """The mi-SVM of [Andrews03], over many kernels: instances of positive bags are relabelled by the SVM.

    >>> from kernelweave import presets
    >>> presets.mi_svm(C=10.0).C
    10.0
    """
    return InstanceLabelMKLClassifier(bank, C=C, **params)


def witness_mi_svm(bank: Any = None, *, C: float = 1.0, **params: Any) -> WitnessMKLClassifier:
    """The MI-SVM of [Andrews03], over many kernels: a positive bag is its highest instance.

    >>> from kernelweave import presets
    >>> presets.witness_mi_svm(C=10.0).C
    10.0
    """
    return WitnessMKLClassifier(bank, C=C, **params)


def set_kernel(bank: Any = None, *, C: float = 1.0, **params: Any) -> SetKernelMKLClassifier:
    """The normalised set kernel [Gartner02], over many kernels: a bag is the mean of its instances.

    >>> from kernelweave import presets
    >>> presets.set_kernel(C=10.0).C
    10.0
    """
    return SetKernelMKLClassifier(bank, C=C, **params)


def obscure(bank: Any = None, *, p: float = 1.5, C: float = 1.0, **params: Any) -> ObscureClassifier:
    """OBSCURE [Orabona10]: multiclass p-norm MKL by its online and batch stages.

    Epochs are added until the relative gap is 0.1; at large C, where they do not suffice, it warns with the gap.
    With p = 1, where the stages have no step, it is the certified solver.

    >>> from kernelweave import presets
    >>> presets.obscure(p=1.25).solver.eta
    2.0
    """
    solver = None if p == 1.0 else OnlineBatch(tol=0.1)
    return ObscureClassifier(bank, p=p, C=C, **{"solver": solver, **params})


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
    """LP-β [Gehler09]: a classifier on every kernel, mixed by a linear program with a soft margin.

    >>> from kernelweave import presets
    >>> presets.lp_beta(nu=0.2).nu
    0.2
    """
    return LPBetaClassifier(bank, learner=Hinge(C=C), nu=nu, **params)


def itml(**params: Any) -> ITML:
    """ITML [Davis07; Xu14, Eq. (5.2)]: a Mahalanobis metric from similar and dissimilar pairs.

    >>> from kernelweave import presets
    >>> presets.itml(gamma=0.1)
    ITML(gamma=0.1)
    """
    return ITML(**params)


def itml_plus(**params: Any) -> ITMLPlus:
    """ITML+ in its soft form: privileged distances as slacks, with a price on the wrong order.

    >>> from kernelweave import presets
    >>> presets.itml_plus().kappa
    1.0
    """
    return ITMLPlus(**params)


def itml_plus_hard(**params: Any) -> ITMLPlus:
    """ITML+ as it is stated [Xu14, Eq. (5.4)]: no slack but the privileged distance; often infeasible.

    >>> from kernelweave import presets
    >>> presets.itml_plus_hard()
    ITMLPlus(kappa=None)
    """
    return ITMLPlus(**{"kappa": None, **params})


def itml_plus_thesis(**params: Any) -> ITMLPlus:
    """ITML+ as it was solved [Xu14, Algorithm 6]: multipliers are never given back, ten sweeps at most.

    It runs where the hard form has no solution as well; its duality gap is infinite there.

    >>> from kernelweave import presets
    >>> presets.itml_plus_thesis().projections
    'uncorrected'
    """
    return ITMLPlus(**{"kappa": None, "projections": "uncorrected", "max_iter": 10, **params})


def itml_s(**params: Any) -> ITMLSelect:
    """ITML-S [Xu14, Sec. 5.5.2]: leave out pairs that the privileged features contradict, then ITML.

    >>> from kernelweave import presets
    >>> presets.itml_s(drop=0.2)
    ITMLSelect(drop=0.2)
    """
    return ITMLSelect(**params)
