"""What users hand over: tables and their columns, several tables of the same samples, bags of instances."""

from kernelweave.views.bags import Bags
from kernelweave.views.views import Views

__all__ = ["Bags", "Views"]
