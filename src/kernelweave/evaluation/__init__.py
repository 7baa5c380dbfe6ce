"""Comparing methods: what differences mean."""

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
    "Summary",
    "average_ranks",
    "friedman_nemenyi",
    "paired",
    "ranks",
    "summary",
]
