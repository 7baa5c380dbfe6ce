"""Kernels that count sample by sample: switches and gating, their mathematics and their estimators."""

from kernelweave.adaptive.localized import LocalizedMKLClassifier
from kernelweave.adaptive.sample_adaptive import SampleAdaptiveMKLClassifier

__all__ = ["LocalizedMKLClassifier", "SampleAdaptiveMKLClassifier"]
