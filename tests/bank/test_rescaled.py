"""Kernels scaled once more are those of the chain of scalings, also for new samples."""

import numpy as np

from kernelweave import KernelBank
from kernelweave.bank.rescaled import RescaledKernels
from kernelweave.kernels import Centering, Chain, Gaussian, Linear, UnitMean


def test_they_are_what_the_chain_makes_of_them(rng):
    X, Z = rng.normal(size=(300, 4)), rng.normal(size=(7, 4))
    fitted = KernelBank([Gaussian(), Linear()]).fit(X)
    rescaled = RescaledKernels(fitted, (Centering(), UnitMean()))
    ours = list(rescaled.grams())
    for m, (K, mine) in enumerate(zip(fitted.grams(), ours, strict=True)):
        chain = Chain((Centering(), UnitMean())).fit(K)
        np.testing.assert_allclose(mine, chain.train(K), atol=1e-12)
        np.testing.assert_array_equal(mine, mine.T)
        rows = dict(fitted.cross(Z))[m]
        np.testing.assert_allclose(dict(rescaled.cross(Z))[m], chain.rows(rows), atol=1e-12)
        np.testing.assert_allclose(dict(rescaled.between(X[:9], X))[m], mine[:9], atol=1e-10)
