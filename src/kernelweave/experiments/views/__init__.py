"""What is shown of a study's records: tables with the printed figures of the paper beside ours, and drawings.

``figures`` has the views that draw, ``tables`` those that do not, ``split_values`` how records become values.
"""

from kernelweave.experiments.views.figures import Bands, Bars, Scores, Weights
from kernelweave.experiments.views.tables import Accuracies, Means, TaskMeans, Times

__all__ = ["Accuracies", "Bands", "Bars", "Means", "Scores", "TaskMeans", "Times", "Weights"]
