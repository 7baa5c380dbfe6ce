"""Tidy tables, for those who have pandas."""

from __future__ import annotations

from typing import Any


def tidy(columns: Any) -> Any:
    """Return columns (or rows) as a pandas frame."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "A frame needs pandas, which is not installed: pip install 'kernelweave[io]', or read the "
            "numbers from the attributes."
        ) from error
    return pd.DataFrame(columns)
