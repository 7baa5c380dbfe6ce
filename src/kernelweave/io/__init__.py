"""Model files: what was learnt, written down without code and read back without running any."""

from kernelweave.io.atomic import require_writable, whole_file, written_whole
from kernelweave.io.model_file import FORMAT, about, load, save

__all__ = ["FORMAT", "about", "load", "require_writable", "save", "whole_file", "written_whole"]
