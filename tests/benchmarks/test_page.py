"""docs/speed.md is made of the results, and of nothing else."""

import json

from benchmarks.__main__ import PAGE, PARTS, RESULTS
from benchmarks.page import markdown, page
from rich.table import Table


def test_the_page_is_what_the_results_make():
    assert PAGE.read_text(encoding="utf-8") == page(PARTS, RESULTS)


def test_only_parts_with_results_are_on_the_page(tmp_path):
    class Part:
        @staticmethod
        def table(rows):
            out = Table("what", "ratio", title="A title")
            for row in rows:
                out.add_row(row["what"], f"{row['ratio']:.1f}")
            return out

    rows = [{"what": "a|b", "ratio": 2.0}]
    versions = {"python": "3", "numpy": "2", "scikit-learn": "1"}
    (tmp_path / "one.json").write_text(json.dumps({"versions": versions, "rows": rows}))
    text = page({"one": Part, "two": Part}, tmp_path)
    assert "## one\n\nA title\n\n| what | ratio |\n| --- | ---: |\n| a\\|b | 2.0 |\n" in text
    assert "(python 3, numpy 2, scikit-learn 1)" in text
    assert "two" not in text.split("## one")[1]
    assert markdown(Part.table(rows)).startswith("A title")
