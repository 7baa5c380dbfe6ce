#!/bin/sh
# Build the core under AddressSanitizer and UBSan beside the ordinary one and run its tests with it.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=$(cd "$root" && command -v "${PYTHON:-python3}" || echo "$root/$PYTHON")
case "$python" in /*) ;; *) python="$root/$python" ;; esac
build="$root/build/sanitize"
nanobind=$("$python" -m nanobind --cmake_dir)
cmake=$(dirname "$python")/cmake
[ -x "$cmake" ] || cmake=cmake
mkdir -p "$build"
"$cmake" -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Debug -DKERNELWEAVE_SANITIZE=ON \
  -Dnanobind_DIR="$nanobind" -DPython_EXECUTABLE="$python" > "$build.log" 2>&1 || { cat "$build.log"; exit 1; }
"$cmake" --build "$build" -j 2 >> "$build.log" 2>&1 || { cat "$build.log"; exit 1; }
# The interpreter is not instrumented, so the runtime has to be loaded first; Python's own leaks are not ours.
LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)" \
ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
KERNELWEAVE_CORE_DIR="$build" PYTHONPATH="$root" OPENBLAS_NUM_THREADS=1 \
  "$python" -m pytest -q -p no:cacheprovider -p tests.core.instrumented "$root/tests/core"
