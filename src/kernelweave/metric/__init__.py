"""Mahalanobis metrics from pairs of points, with the interface of metric-learn and a certificate.

Information-theoretic metric learning, `ITML` [Davis07; Xu14, Eq. (5.2)], learns from similar and dissimilar
pairs; `ITMLPlus` [Xu14, Eq. (5.4)] also from privileged features, known for training pairs only; `ITMLSelect`
[Xu14, Sec. 5.5.2] uses these to drop pairs; `SupervisedMetric` draws the pairs from labelled samples.

Mathematics: `problem.py` (the LogDet problem, its dual and its certificate). Solver: `projections.py` (cyclic
Bregman projections, and whether the hard form has a solution at all) and `central_path.py` (Newton steps for few
features). Estimators: `itml.py` (with the `fit`
that all share), `itml_plus.py`, `itml_select.py`, `supervised.py`; `mahalanobis.py` is what a learnt metric
offers, `inputs.py` checks what the user gives.
"""

from kernelweave.metric.itml import ITML
from kernelweave.metric.itml_plus import ITMLPlus
from kernelweave.metric.itml_select import ITMLSelect
from kernelweave.metric.problem import LogDetProblem, PairSpace
from kernelweave.metric.projections import BregmanProjections, MetricResult
from kernelweave.metric.supervised import SupervisedMetric, pairs_from_labels

__all__ = [
    "ITML",
    "BregmanProjections",
    "ITMLPlus",
    "ITMLSelect",
    "LogDetProblem",
    "MetricResult",
    "PairSpace",
    "SupervisedMetric",
    "pairs_from_labels",
]
