"""Mahalanobis metrics learnt from pairs, with the interface of metric-learn."""

from kernelweave.metric.itml import ITML
from kernelweave.metric.itml_plus import ITMLPlus
from kernelweave.metric.select import ITMLSelect
from kernelweave.metric.supervised import SupervisedMetric

__all__ = ["ITML", "ITMLPlus", "ITMLSelect", "SupervisedMetric"]
