"""Comparing methods: what differences mean."""

from kernelweave.evaluation.permuted import PermutedControl, permuted_control
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
    "friedman_nemenyi",
    "paired",
    "permuted_control",
    "ranks",
    "summary",
]
