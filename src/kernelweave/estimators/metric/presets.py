"""The metric learners of the papers by name."""

from __future__ import annotations

from typing import Any

from kernelweave.estimators.metric.itml import ITML
from kernelweave.estimators.metric.itml_plus import ITMLPlus
from kernelweave.estimators.metric.select import ITMLSelect


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
