"""Why a model says what it says: what each kernel adds, what each view counts, how sure it is."""

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
