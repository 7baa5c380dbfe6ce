#!/bin/sh
# Draws docs/images/report.png: the top of the report that `make demo` writes, as Chromium shows it.
set -eu
cd "$(dirname "$0")/../.."
page=${1:-kernelweave-report.html}
raw=$(mktemp -d)
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1180,1120 \
  --screenshot="$raw/report.png" "file://$(realpath "$page")" 2>/dev/null
# Few colours make a small file.
.venv/bin/python -c "
from PIL import Image
import sys
Image.open(sys.argv[1]).convert('RGB').quantize(96, dither=Image.Dither.NONE).save(sys.argv[2], optimize=True)
" "$raw/report.png" docs/images/report.png
rm -r "$raw"
