"""Comparing methods on the same splits, scoring metrics of pairs, and the control for privileged features."""

from kernelweave.evaluation.pairs import pair_average_precision, pair_roc_auc
from kernelweave.evaluation.permuted import PermutedControl, permuted_control
from kernelweave.evaluation.ranking import cmc_curve, rank_accuracy
from kernelweave.evaluation.statistics import (
    Friedman,
    Paired,
    Summary,
    average_ranks,
    friedman_nemenyi,
    paired,
    ranks,
    summary,
)

__all__ = [
    "Friedman",
    "Paired",
    "PermutedControl",
    "Summary",
    "average_ranks",
    "cmc_curve",
    "friedman_nemenyi",
    "pair_average_precision",
    "pair_roc_auc",
    "paired",
    "permuted_control",
    "rank_accuracy",
    "ranks",
    "summary",
]
