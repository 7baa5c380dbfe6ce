"""Why a model predicts what it does.

``contributions`` has what each kernel adds to a decision, ``leaving_out`` what a view is worth, ``stability``
how the weights vary from sample to sample; ``refits`` is what the last two share with the report.
"""

from kernelweave.explain.contributions import Contributions, contributions
from kernelweave.explain.leaving_out import ViewCosts, leave_view_out
from kernelweave.explain.stability import WeightStability, weight_stability

__all__ = [
    "Contributions",
    "ViewCosts",
    "WeightStability",
    "contributions",
    "leave_view_out",
    "weight_stability",
]
