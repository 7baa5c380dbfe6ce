"""The papers' data sets by name, and problems to draw.

``catalogue`` loads files by name, ``openml`` fetches the same sets, ``generators`` draws simulations.
"""

from kernelweave.datasets.catalogue import load, names
from kernelweave.datasets.dataset import Dataset, data_directory
from kernelweave.datasets.generators import (
    corrupted_views,
    g241c,
    g241d,
    overlapping_gaussians,
    privileged_toy,
    ringnorm,
    with_noise_features,
)
from kernelweave.datasets.openml import fetch

__all__ = [
    "Dataset",
    "corrupted_views",
    "data_directory",
    "fetch",
    "g241c",
    "g241d",
    "load",
    "names",
    "overlapping_gaussians",
    "privileged_toy",
    "ringnorm",
    "with_noise_features",
]
