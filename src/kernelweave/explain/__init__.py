"""Why a model says what it says: what each kernel adds, what each view counts, how sure it is."""

from kernelweave.explain.contributions import Contributions, contributions
from kernelweave.explain.stability import WeightStability, weight_stability

__all__ = ["Contributions", "WeightStability", "contributions", "weight_stability"]
