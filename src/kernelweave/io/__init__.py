"""Model files: what was learnt, written down without code and read back without running any."""

from kernelweave.io.atomic import whole_file, written_whole
from kernelweave.io.model_file import FORMAT, about, load, save

__all__ = ["FORMAT", "about", "load", "save", "whole_file", "written_whole"]
