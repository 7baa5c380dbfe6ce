"""Displays in the manner of scikit-learn's, drawn with matplotlib."""

from kernelweave.plots.bands import BandsDisplay
from kernelweave.plots.critical_difference import CriticalDifferenceDisplay
from kernelweave.plots.grouped_bars import GroupedBarsDisplay
from kernelweave.plots.pairs import PairDistancesDisplay, PairScoresDisplay
from kernelweave.plots.ranking import CMCDisplay
from kernelweave.plots.switches import SwitchesDisplay

__all__ = [
    "BandsDisplay",
    "CMCDisplay",
    "CriticalDifferenceDisplay",
    "GroupedBarsDisplay",
    "PairDistancesDisplay",
    "PairScoresDisplay",
    "SwitchesDisplay",
]
