"""Displays in the manner of scikit-learn's, drawn with matplotlib."""

from kernelweave.plots.certificate import CertificateDisplay
from kernelweave.plots.comparison import (
    BandsDisplay,
    ComparisonDisplay,
    CriticalDifferenceDisplay,
    GroupedBarsDisplay,
)
from kernelweave.plots.contributions import ContributionsDisplay
from kernelweave.plots.pairs import CMCDisplay, PairDistancesDisplay, PairScoresDisplay
from kernelweave.plots.switches import SwitchesDisplay
from kernelweave.plots.weights import PathDisplay, WeightsDisplay

__all__ = [
    "BandsDisplay",
    "CMCDisplay",
    "CertificateDisplay",
    "ComparisonDisplay",
    "ContributionsDisplay",
    "CriticalDifferenceDisplay",
    "GroupedBarsDisplay",
    "PathDisplay",
    "PairDistancesDisplay",
    "PairScoresDisplay",
    "SwitchesDisplay",
    "WeightsDisplay",
]
