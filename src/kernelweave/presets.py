"""The published methods by name."""

from kernelweave.estimators.presets import (
    average_kernel,
    elastic_net_mkl,
    iokl,
    l2_mkl,
    lp_mkl,
    silp,
    simple_mkl,
    sm1_mkl,
    sm2_mkl,
    sum_kernel,
)

__all__ = [
    "average_kernel",
    "elastic_net_mkl",
    "iokl",
    "l2_mkl",
    "lp_mkl",
    "silp",
    "simple_mkl",
    "sm1_mkl",
    "sm2_mkl",
    "sum_kernel",
]
