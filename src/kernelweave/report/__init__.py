"""The report: one page about one model that opens anywhere, offline.

``writer`` has `write_report`. ``findings`` gathers all that the page shows, with ``baselines``, ``held_out``
and ``weight_path`` for its parts; ``page`` and ``charts`` turn the findings into HTML and SVG (``svg``).
"""

from kernelweave.report.findings import Findings, MethodScores, gather_findings
from kernelweave.report.writer import write_report

__all__ = ["Findings", "MethodScores", "gather_findings", "write_report"]
