"""The report: one page about one model that opens anywhere, offline."""

from kernelweave.report.study import Contest, Study, study
from kernelweave.report.writing import write_report

__all__ = ["Contest", "Study", "study", "write_report"]
