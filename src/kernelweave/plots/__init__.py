"""Displays in the manner of scikit-learn's, drawn with matplotlib."""

from kernelweave.plots.bands import BandsDisplay
from kernelweave.plots.certificate import CertificateDisplay
from kernelweave.plots.comparison import ComparisonDisplay
from kernelweave.plots.contributions import ContributionsDisplay
from kernelweave.plots.critical_difference import CriticalDifferenceDisplay
from kernelweave.plots.grouped_bars import GroupedBarsDisplay
from kernelweave.plots.pairs import PairDistancesDisplay, PairScoresDisplay
from kernelweave.plots.path import PathDisplay
from kernelweave.plots.ranking import CMCDisplay
from kernelweave.plots.switches import SwitchesDisplay
from kernelweave.plots.weights import WeightsDisplay

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
