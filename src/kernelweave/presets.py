"""The published methods by name."""

from kernelweave.estimators.presets import (
    average_kernel,
    elastic_net_mkl,
    l2_mkl,
    localized_mkl,
    lp_mkl,
    mk_fda,
    sample_adaptive,
    silp,
    simple_mkl,
    sm1_mkl,
    sm2_mkl,
    sum_kernel,
)
from kernelweave.estimators.two_step_presets import (
    align,
    alignf,
    easy_mkl,
    f_heuristic,
    kta,
    lp_beta,
    pwmk,
)

__all__ = [
    "align",
    "alignf",
    "average_kernel",
    "easy_mkl",
    "elastic_net_mkl",
    "f_heuristic",
    "kta",
    "l2_mkl",
    "lp_beta",
    "lp_mkl",
    "mk_fda",
    "pwmk",
    "localized_mkl",
    "sample_adaptive",
    "silp",
    "simple_mkl",
    "sm1_mkl",
    "sm2_mkl",
    "sum_kernel",
]
