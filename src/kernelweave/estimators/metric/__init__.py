"""Mahalanobis metrics learnt from pairs, with the interface of metric-learn."""

from kernelweave.estimators.metric.itml import ITML
from kernelweave.estimators.metric.itml_plus import ITMLPlus
from kernelweave.estimators.metric.select import ITMLSelect
from kernelweave.estimators.metric.supervised import SupervisedMetric

__all__ = ["ITML", "ITMLPlus", "ITMLSelect", "SupervisedMetric"]
