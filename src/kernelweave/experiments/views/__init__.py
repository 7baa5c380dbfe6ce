"""What is shown of a comparison: tables with the printed figures beside ours, and drawings."""

from kernelweave.experiments.views.bands import Bands
from kernelweave.experiments.views.bars import Bars
from kernelweave.experiments.views.means import Means
from kernelweave.experiments.views.scores import Scores
from kernelweave.experiments.views.times import Times
from kernelweave.experiments.views.weights import Weights

__all__ = ["Bands", "Bars", "Means", "Scores", "Times", "Weights"]
