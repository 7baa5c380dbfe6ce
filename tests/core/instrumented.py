"""Put the core built in KERNELWEAVE_CORE_DIR in the place of the installed one."""

import importlib.util
import os
import sys
from pathlib import Path

import kernelweave

(path,) = Path(os.environ["KERNELWEAVE_CORE_DIR"]).glob("_core*.so")
spec = importlib.util.spec_from_file_location("kernelweave._core", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
sys.modules["kernelweave._core"] = kernelweave._core = module
