"""Regression by evidence: kernel weights and noise by restricted maximum likelihood, for one target or many.

`components`, `feature_components`
    Kernels and targets in coordinates without intercept: one per sample, or a basis of features.
`likelihood`
    The restricted likelihood, its derivatives, and the start by moments.
`newton`, `pooled`
    One target: damped Newton steps. Many targets: common points and a prior over them that all share.
`posterior`
    What is learnt, and means and variances of new samples.
`regressor`
    `EvidenceMKLRegressor`.
"""

from kernelweave.evidence.newton import EvidenceNewton
from kernelweave.evidence.pooled import PooledEvidence
from kernelweave.evidence.regressor import EvidenceMKLRegressor

__all__ = ["EvidenceMKLRegressor", "EvidenceNewton", "PooledEvidence"]
