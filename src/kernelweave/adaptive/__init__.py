"""Kernels that count sample by sample, in two ways.

Sample-adaptive MKL [Liu14] switches kernels off for the training samples they do not help to classify;
localized MKL [Gonen08, Gonen13] makes the weights functions of the sample. Both alternate between an SVM for
given weights per sample and better weights for that SVM; neither problem is convex, and the certificates are
those of the convex problem for the weights found.

`local_grams`
    The stacks diag(e_m) K_m diag(e_m) of kernels with weights per sample.
`switches`, `held_out`, `sample_adaptive`
    The mathematics of switches, what held-out samples say of them, and `SampleAdaptiveMKLClassifier`.
`gating`, `localized`
    The families of gatings and their descent, and `LocalizedMKLClassifier`.
"""

from kernelweave.adaptive.gating import Gating, GaussianSoftmax, Sigmoid, Softmax, learn_gating
from kernelweave.adaptive.localized import LocalizedMKLClassifier
from kernelweave.adaptive.sample_adaptive import SampleAdaptiveMKLClassifier
from kernelweave.adaptive.switches import fewest_kernels, learn_switches

__all__ = [
    "GaussianSoftmax",
    "Gating",
    "LocalizedMKLClassifier",
    "SampleAdaptiveMKLClassifier",
    "Sigmoid",
    "Softmax",
    "fewest_kernels",
    "learn_gating",
    "learn_switches",
]
