"""Written once, by the version whose files the folder holds: a small model of each kind, its predictions.

    python tests/io/version_0_1/write.py

Later versions read these files (tests/io/test_old_files.py); they never write them again.
"""

import warnings
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

import kernelweave as kw
from kernelweave.geometry import BoxSimplex, GroupBox, LpBall
from kernelweave.kernels import (
    Centering,
    Chain,
    ChiSquared,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    UnitDiagonal,
    UnitMean,
    UnitTrace,
)
from kernelweave.learners import EpsilonInsensitive, Hinge, SquaredHinge

FOLDER = Path(__file__).parent


def inputs():
    rng = np.random.default_rng(20261118)
    X = rng.normal(size=(40, 4))
    with_gaps = X.copy()
    with_gaps[::7, :2] = np.nan
    return {
        "X": X,
        "with_gaps": with_gaps,
        "new": rng.normal(size=(12, 4)),
        "y": np.where(X[:, 0] + 0.3 * rng.normal(size=40) > 0, "yes", "no"),
        "three": np.digitize(X[:, 1], [-0.4, 0.4]),
        "target": X[:, 0] * 2.0 + rng.normal(size=40),
        "privileged": rng.normal(size=(40, 2)),
        "pairs": rng.normal(size=(30, 2, 3)),
        "same": np.where(np.arange(30) % 2, 1, -1),
        "pairs_privileged": rng.normal(size=(30, 2, 2)),
        "bag_ids": np.repeat(np.arange(20), 2),
        "of_bags": np.where(X[::2, 0] > 0, 1, 0),
    }


def models(d):
    """Yield (name, fitted model, name of the method, what the method is called with)."""
    X, new, y = d["X"], d["new"], d["y"]
    views = {"a": slice(0, 2), "b": slice(2, 4)}
    two = kw.KernelBank([Linear(), Gaussian()], scaling=Chain((Centering(), UnitTrace())))
    many = kw.KernelBank.per_view(
        [Gaussian(), Laplacian(), Polynomial(degree=2)], views=views, scaling=UnitDiagonal()
    )
    bags, new_bags = kw.Bags(X, d["bag_ids"]), kw.Bags(new, np.repeat(np.arange(6), 2))
    partial = np.where(np.arange(40) % 2, -1, y == "yes").astype(int)
    search = {"learner_values": [1.0], "geometry_values": [0.5, 1.0], "cv": 2}
    kernels = [X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(axis=2))]
    rows = [new @ X.T, np.exp(-((new[:, None] - X) ** 2).sum(axis=2))]

    def decided(model):
        return model, "decision_function", new

    yield "classifier", *decided(kw.MKLClassifier(many).fit(X, y))
    yield "classifier_probability", kw.MKLClassifier(two, probability=True).fit(X, y), "predict_proba", new
    box = kw.MKLClassifier(many, geometry=BoxSimplex(nu=0.5), learner=SquaredHinge(C=2.0))
    yield "classifier_box_three_classes", *decided(box.fit(X, d["three"]))
    shared = kw.MKLClassifier(many, geometry=LpBall(2.0), multiclass="shared")
    yield "classifier_lp_shared", *decided(shared.fit(X, d["three"]))
    yield "classifier_missing_views", *decided(kw.MKLClassifier(many).fit(d["with_gaps"], y))
    grouped = kw.MKLClassifier(many, geometry=GroupBox(groups=[0, 0, 0, 1, 1, 1], theta=0.7))
    yield "classifier_groups", *decided(grouped.fit(X, y))
    yield "classifier_precomputed", kw.MKLClassifier("precomputed").fit(kernels, y), "decision_function", rows
    per_feature = kw.KernelBank.per_feature(scaling=UnitMean())
    yield (
        "classifier_per_feature",
        kw.MKLClassifier(per_feature).fit(X[:, :2], y),
        "decision_function",
        new[:, :2],
    )
    positive = kw.KernelBank([ChiSquared(), Linear()])
    model = kw.MKLClassifier(positive, learner=Hinge(C=3.0)).fit(np.abs(X), y)
    yield "classifier_chi_squared", model, "decision_function", np.abs(new)
    yield "search", *decided(kw.MKLClassifierCV(two, **search).fit(X, y))
    yield "regressor", kw.MKLRegressor(many).fit(X, d["target"]), "predict", new
    robust = kw.MKLRegressor(two, learner=EpsilonInsensitive(C=2.0))
    yield "regressor_epsilon", robust.fit(X, d["target"]), "predict", new
    yield "regressor_search", kw.MKLRegressorCV(two, **search).fit(X, d["target"]), "predict", new
    yield "one_class", *decided(kw.OneClassMKL(two).fit(X))
    yield "fisher", *decided(kw.FisherMKLClassifier(many).fit(X, y))
    yield "fisher_three_classes", *decided(kw.FisherMKLClassifier(two).fit(X, d["three"]))
    yield "obscure", *decided(kw.ObscureClassifier(two, random_state=0).fit(X, d["three"]))
    plain = kw.KernelBank([Linear(), Gaussian()])
    nystroem = kw.ObscureClassifier(plain, features=kw.Nystroem(10), random_state=0)
    yield "obscure_nystroem", *decided(nystroem.fit(X, d["three"]))
    yield "sample_adaptive", *decided(kw.SampleAdaptiveMKLClassifier(two).fit(X, y))
    localized = kw.LocalizedMKLClassifier(two, n_restarts=0, tol=1e-3, random_state=0)
    yield "localized", *decided(localized.fit(X, y))
    semi = kw.SemiSupervisedMKLClassifier(two, max_rounds=2)
    yield "semi_supervised", *decided(semi.fit(X, partial))
    multi = kw.MultiInstanceMKLClassifier(two)
    yield "multi_instance", multi.fit(bags, d["of_bags"]), "decision_function", new_bags
    set_kernel = kw.SetKernelMKLClassifier(two)
    yield "set_kernel", set_kernel.fit(bags, d["of_bags"]), "decision_function", new_bags
    yield "clusterer", kw.MKLClusterer(two, max_rounds=2).fit(X), "predict", new
    yield "itml", kw.ITML().fit(d["pairs"], d["same"]), "pair_distance", d["pairs"]
    plus = kw.ITMLPlus().fit(d["pairs"], d["same"], privileged=d["pairs_privileged"])
    yield "itml_plus", plus, "pair_distance", d["pairs"]
    yield "supervised_metric", kw.SupervisedMetric(random_state=0).fit(X, y), "transform", new
    yield "svm_plus", *decided(kw.SVMPlusClassifier().fit(X, y, privileged=d["privileged"]))
    yield "svm_2k", *decided(kw.SVM2K(two).fit(X, y))
    yield "aligned", *decided(kw.AlignedMKLClassifier(two).fit(X, y))
    yield "easy_mkl", *decided(kw.EasyMKLClassifier(two).fit(X, y))
    yield "lp_beta", *decided(kw.LPBetaClassifier(two, cv=2).fit(X, y))


def compress(path):
    """Write the same archive in a tenth of the bytes: it is kept in the repository."""
    with ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def main():
    warnings.simplefilter("ignore")
    data = inputs()
    expected = {}
    for name, model, method, argument in models(data):
        kw.save(model, FOLDER / f"{name}.kw", notes={"method": method})
        compress(FOLDER / f"{name}.kw")
        expected[name] = getattr(model, method)(argument)
    np.savez_compressed(FOLDER / "inputs.npz", **data)
    np.savez_compressed(FOLDER / "expected.npz", **expected)


if __name__ == "__main__":
    main()
