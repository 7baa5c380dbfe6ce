"""The page of results shows what is finished, and names what is not."""

from kernelweave.experiments import Store, experiment
from kernelweave.experiments.render import finished_datasets, results_page


def test_only_finished_data_sets_are_shown():
    cells = [{"dataset": name, "split": split} for name in ("a", "b") for split in (0, 1)]
    records = [{**cell, "accuracy": 0.5} for cell in cells]
    assert finished_datasets(records, cells) == (records, [])
    assert finished_datasets(records[:3], cells) == (records[:2], ["b (1 of 2 cells)"])
    assert finished_datasets(records[:1], cells) == ([], ["a (1 of 2 cells)", "b (0 of 2 cells)"])


def test_cells_without_data_sets_are_finished_together():
    cells = [{"split": 0}, {"split": 1}]
    assert finished_datasets([{"split": 0, "gap": 0.1}], cells) == ([], ["None (1 of 2 cells)"])
    assert finished_datasets(cells, cells) == (cells, [])


def test_the_page_names_what_is_left(tmp_path):
    store, study = Store(tmp_path / "s.sqlite"), experiment("sm-table1").study
    heart = [cell for cell in study.cells(quick=False) if cell["dataset"] == "heart"]
    banana = [cell for cell in study.cells(quick=False) if cell["dataset"] == "banana"]
    measures = {"accuracy": 0.9, "seconds": 1.0, "kernels": 3, "relative_gap": 1e-4}
    for cell in heart[:-1]:
        store.put(study.name, study.protocol, cell, measures, {})
    assert "sm-table1 (69 of 490 cells)" in results_page(store, tmp_path)
    store.put(study.name, study.protocol, heart[-1], measures, {})
    for cell in banana[:2]:
        store.put(study.name, study.protocol, cell, measures, {})
    text = results_page(store, tmp_path)
    assert "## sm-table1" in text
    assert "| Heart |" in text
    assert "| Banana |" not in text
    assert "Not finished, and not shown: diabetes (0 of 70 cells)" in text
    assert "banana (2 of 70 cells)" in text
