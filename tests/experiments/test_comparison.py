"""A cell of a comparison is what a few lines of plain code give."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from kernelweave.bank import KernelBank
from kernelweave.experiments import Comparison, DatasetSample, Method
from kernelweave.geometry import BoxSimplex, Simplex, Uniform
from kernelweave.kernels import Gaussian


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 1], [150, 120])
    X = rng.normal(size=(270, 13))
    X[:, :6] += 0.5 * y[:, None]
    X *= rng.uniform(1, 9, size=13)
    np.savez(tmp_path / "heart.npz", X=X, y=y)
    return tmp_path


def comparison(**options):
    return Comparison(
        name="test",
        samples=(DatasetSample("heart", 120),),
        methods={
            "average": Method(Uniform()),
            "box": Method(BoxSimplex(nu=1.0), "nu", (0.0, 0.5, 1.0)),
            "simplex": Method(Simplex()),
        },
        bank=KernelBank([Gaussian(width=w) for w in (1.0, 4.0)]),
        C=(0.1, 10.0),
        splits=3,
        folds=3,
        **options,
    )


def cell(method, split=0, noise=0.0):
    return {"dataset": "heart", "noise": noise, "split": split, "method": method}


@pytest.mark.parametrize("shift", [0.0, 500.0], ids=["as drawn", "test rows far away"])
def test_the_average_is_scikit_learns_svm_on_the_mean_kernel(folder, monkeypatch, shift):
    study = comparison()
    X, y, train, test = study._split(cell("average"), folder)
    X[test, :6] += shift  # of which nothing may leak into what is learnt
    monkeypatch.setattr(Comparison, "_split", lambda *_: (X.copy(), y, train, test))
    measured = study.measure(cell("average"), folder)
    assert len(train) == 84
    assert len(test) == 36
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    d2 = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    K = np.mean([np.exp(-d2 / (2 * w * w)) for w in (1.0, 4.0)], axis=0)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 10.0]}, cv=folds)
    search.fit(K[np.ix_(train, train)], y[train])
    assert measured["C"] == search.best_params_["C"]
    assert measured["accuracy"] == search.score(K[np.ix_(test, train)], y[test])
    assert measured["cv_accuracy"] == pytest.approx(search.best_score_)
    assert measured["kernels"] == 2
    assert measured["cv_accuracy"] > 0.7  # there is something to learn


def test_a_cell_gives_the_same_numbers_every_time(folder):
    first, second = (comparison().measure(cell("box", split=2), folder) for _ in range(2))
    assert {k: v for k, v in first.items() if k != "seconds"} == {
        k: v for k, v in second.items() if k != "seconds"
    }
    assert first["relative_gap"] <= 1e-3
    assert first["nu"] in (0.5, 1.0)


def test_splits_differ_and_are_the_same_for_all_methods(folder):
    study = comparison()
    rows = [study._split(cell(method, split), folder)[0] for split in (0, 1) for method in study.methods]
    assert (rows[0] == rows[1]).all()
    assert (rows[0] == rows[2]).all()
    assert (rows[0] != rows[3]).any()


def test_noise_columns_are_added_to_the_same_samples(folder):
    study = comparison(noise=(0.0, 1.0))
    clean, noisy = (study._split(cell("average", noise=noise), folder) for noise in (0.0, 1.0))
    assert noisy[0].shape[1] == 26
    assert (noisy[0][:, :13] == clean[0]).all()
    assert len(study.cells(quick=False)) == 2 * 3 * 3


def test_the_fingerprint_follows_what_changes_the_numbers():
    assert comparison().protocol == comparison(quick={"split": (0,)}).protocol
    assert comparison().protocol != comparison(tol=1e-2).protocol
    assert comparison().protocol != comparison(train_share=0.5).protocol


def test_quick_keeps_the_cells_it_names():
    study = comparison(quick={"split": (0,), "method": ("box",)})
    assert study.cells(quick=True) == [cell("box")]
