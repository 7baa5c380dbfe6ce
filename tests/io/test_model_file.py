"""A model file gives back the model, whole or not at all, and runs nothing."""

import inspect
import io
import json
import os
import zipfile

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave
from kernelweave import Bags, KernelBank, Views
from kernelweave.errors import DataError
from kernelweave.io import FORMAT, about, load, save
from kernelweave.kernels import Centering, Chain, FromFunction, Gaussian, Linear, UnitDiagonal, UnitTrace

pytest.importorskip("skops")
pytestmark = pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4))
Y = np.where(X[:, 0] + 0.3 * rng.normal(size=40) > 0, "yes", "no")
PAIRS = rng.normal(size=(30, 2, 3))
SAME = np.where(((PAIRS[:, 0] - PAIRS[:, 1]) ** 2).sum(axis=1) < 5.0, 1, -1)
BAGS = Bags(X, np.repeat(np.arange(20), 2))
OF_BAGS = np.where(X[::2, 0] > 0, 1, 0)
TWO = KernelBank([Linear(), Gaussian()], scaling=Chain((Centering(), UnitTrace())))


def classified(kind, y=Y, **params):
    model = kind(TWO, **params).fit(X, y)
    return model, lambda m: m.decision_function(X)


def of_bags(kind):
    return kind(TWO).fit(BAGS, OF_BAGS), lambda m: m.decision_function(BAGS)


def of_pairs(kind, **params):
    return kind(**params).fit(PAIRS, SAME), lambda m: m.pair_distance(PAIRS)


ORDER = {"learner_values": [1.0], "geometry_values": [0.5, 1.0], "cv": 2}
CASES = {
    "AlignedMKLClassifier": lambda k: classified(k),
    "EasyMKLClassifier": lambda k: classified(k),
    "FHeuristicClassifier": lambda k: classified(k),
    "EvidenceMKLRegressor": lambda k: (
        k(TWO).fit(X, X[:, :2] ** 2),
        lambda m: np.stack(m.predict(X, return_std=True)),
    ),
    "FisherMKLClassifier": lambda k: classified(k),
    "ITML": lambda k: of_pairs(k),
    "ITMLPlus": lambda k: (
        k().fit(PAIRS, SAME, privileged=rng.normal(size=(30, 2, 2))),
        lambda m: m.pair_distance(PAIRS),
    ),
    "ITMLSelect": lambda k: (
        k().fit(PAIRS, SAME, privileged=rng.normal(size=(30, 2, 2))),
        lambda m: m.pair_distance(PAIRS),
    ),
    "InstanceLabelMKLClassifier": of_bags,
    "LPBetaClassifier": lambda k: classified(k, cv=2),
    "LocalizedMKLClassifier": lambda k: classified(k, n_init=1, tol=1e-3, random_state=0),
    "MKLClassifier": lambda k: classified(k, probability=True),
    "MKLClassifierCV": lambda k: classified(k, **ORDER),
    "MKLClusterer": lambda k: (k(TWO, max_rounds=2).fit(X), lambda m: m.labels_),
    "MKLRegressor": lambda k: (k(TWO).fit(X, X[:, 0]), lambda m: m.predict(X)),
    "MKLRegressorCV": lambda k: (k(TWO, **ORDER).fit(X, X[:, 0]), lambda m: m.predict(X)),
    "MultiInstanceMKLClassifier": of_bags,
    "MultiInstanceMKLClassifierCV": of_bags,
    "ObscureClassifier": lambda k: classified(k, random_state=0),
    "OneClassMKL": lambda k: (k(TWO).fit(X), lambda m: m.decision_function(X)),
    "PWMKClassifier": lambda k: classified(k, cv=2),
    "SVM2K": lambda k: (k(TWO).fit(X, Y), lambda m: m.decision_function(X)),
    "SVMPlusClassifier": lambda k: (k().fit(X, Y, privileged=X**2), lambda m: m.decision_function(X)),
    "SampleAdaptiveMKLClassifier": lambda k: classified(k),
    "SemiSupervisedMKLClassifier": lambda k: classified(
        k, y=np.where(np.arange(40) % 2, -1, Y == "yes").astype(int), max_rounds=2
    ),
    "SetKernelMKLClassifier": of_bags,
    "SingleInstanceMKLClassifier": of_bags,
    "SupervisedMetric": lambda k: (k(random_state=0).fit(X, Y), lambda m: m.transform(X)),
    "WitnessMKLClassifier": of_bags,
}


def estimators():
    return {
        name
        for name in kernelweave.__all__
        if inspect.isclass(kind := getattr(kernelweave, name)) and issubclass(kind, BaseEstimator)
    }


def test_every_estimator_has_a_case():
    assert set(CASES) == estimators()


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_model_comes_back_as_it_was(name, tmp_path):
    model, answers = CASES[name](getattr(kernelweave, name))
    save(model, tmp_path / "model.kw")
    back = load(tmp_path / "model.kw")
    assert type(back) is type(model)
    np.testing.assert_array_equal(answers(back), answers(model))
    assert set(vars(back)) == set(vars(model))
    assert repr(back) == repr(model)
    if hasattr(model, "certificate_"):
        assert back.certificate_ == model.certificate_
    assert about(tmp_path / "model.kw")["model"] == name
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.kw"]


@pytest.fixture(scope="module")
def model():
    return kernelweave.MKLClassifier(TWO).fit(X, Y)


@pytest.fixture
def file(model, tmp_path):
    save(model, tmp_path / "model.kw", notes={"target": "label"})
    return tmp_path / "model.kw"


def relabelled(file, **changes):
    """The same file with other words on its label."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    label = json.loads(members["kernelweave.json"]) | changes
    members["kernelweave.json"] = json.dumps(label).encode()
    pack(file, members)


def pack(file, members):
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_the_label_tells_what_is_inside(file, model):
    label = about(file)
    assert label["format"] == FORMAT
    assert label["kernels"] == list(model.kernel_names_)
    assert label["views"] == ["x"]
    assert label["notes"] == {"target": "label"}
    assert label["versions"]["numpy"] == np.__version__


def test_views_pipelines_searches_and_frames_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    views = Views({"a": X[:, :2], "b": pd.DataFrame(X[:, 2:], columns=["u", "v"])})
    bank = KernelBank.per_view([Gaussian(), Linear()], scaling=UnitDiagonal())
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = KernelBank.per_view([Gaussian()], views={"one": ["a", "b"], "two": slice("c", "d")})
    search = GridSearchCV(kernelweave.MKLClassifier(named), {"learner__C": [1.0, 2.0]}, cv=2)
    for data, one in (
        (views, kernelweave.MKLClassifier(bank)),
        (frame, search),
        (X, make_pipeline(StandardScaler(), kernelweave.MKLClassifier(TWO))),
    ):
        one.fit(data, Y)
        save(one, tmp_path / "one.kw")
        back = load(tmp_path / "one.kw")
        np.testing.assert_array_equal(back.decision_function(data), one.decision_function(data))
        assert about(tmp_path / "one.kw")["kernels"]


def test_gaps_in_views_come_back(tmp_path):
    holes = Views({"a": X[:, :2], "b": X[5:, 2:]}, rows={"b": np.arange(5, 40)})
    one = kernelweave.MKLClassifier(KernelBank.per_view()).fit(holes, Y)
    save(one, tmp_path / "one.kw")
    back = load(tmp_path / "one.kw")
    np.testing.assert_array_equal(back.decision_function(holes), one.decision_function(holes))


@pytest.mark.parametrize("kept", [0, 1, 10, 0.3, 0.9, -1])
def test_a_truncated_file_is_one_sentence(file, kept):
    content = file.read_bytes()
    file.write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])
    with pytest.raises(DataError, match=r"model\.kw is (truncated or damaged|not a model file)"):
        load(file)


def test_a_flipped_bit_is_noticed_wherever_it_is_in_the_arrays(file):
    content = bytearray(file.read_bytes())
    for place in range(100, len(content) - 2000, 4001):
        spoilt = bytearray(content)
        spoilt[place] ^= 0x10
        file.write_bytes(spoilt)
        with pytest.raises(DataError, match=r"damaged|not a model"):
            load(file)


@pytest.mark.parametrize("content", [b"hello", b"\x80\x04\x95", b"PK\x03\x04 but no archive"])
def test_a_foreign_file_is_one_sentence(tmp_path, content):
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(DataError, match="other is"):
        load(tmp_path / "other")


def test_an_archive_of_something_else_is_one_sentence(tmp_path):
    np.savez(tmp_path / "arrays.npz", a=np.ones(3))
    with pytest.raises(DataError, match="not a model file of kernelweave"):
        load(tmp_path / "arrays.npz")


def test_a_newer_format_asks_for_a_newer_kernelweave(file):
    relabelled(file, format=FORMAT + 1)
    with pytest.raises(DataError, match="newer than this one"):
        load(file)


@pytest.mark.parametrize("change", [{"format": "x"}, {"versions": 3}, {"format": None}])
def test_a_label_of_nonsense_is_damage(file, change):
    relabelled(file, **change)
    with pytest.raises(DataError, match="damaged"):
        load(file)


def test_a_file_that_names_other_types_is_refused_before_anything_is_made(file):
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = members["schema.json"].decode()
    for module, name in (("os", "system"), ("subprocess", "Popen"), ("kernelweave.cli", "app")):
        state = json.loads(schema)
        state["__module__"], state["__class__"] = module, name
        pack(file, members | {"schema.json": json.dumps(state).encode()})
        with pytest.raises(DataError, match=f"{module}.{name}"):
            load(file)


def exchange(file, of, by):
    """The same file with another class, (module, name), of all objects of one."""

    def renamed(node):
        if isinstance(node, list):
            return [renamed(child) for child in node]
        if not isinstance(node, dict):
            return node
        node = {key: renamed(child) for key, child in node.items()}
        if (node.get("__module__"), node.get("__class__")) == of:
            node["__module__"], node["__class__"] = by
            found.append(node)
        return node

    found = []
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["schema.json"] = json.dumps(renamed(json.loads(members["schema.json"]))).encode()
    assert found
    pack(file, members)


CLASSIFIER = ("kernelweave.estimators.classifier", "MKLClassifier")
REGRESSOR = ("kernelweave.estimators.regressor", "MKLRegressor")
GAUSSIAN, LAPLACIAN = (("kernelweave.kernels.radial", name) for name in ("Gaussian", "Laplacian"))


@pytest.mark.parametrize(("of", "by"), [(CLASSIFIER, REGRESSOR), (GAUSSIAN, LAPLACIAN)])
def test_a_file_whose_types_were_exchanged_does_not_load_as_something_else(file, of, by):
    exchange(file, of, by)
    with pytest.raises(DataError, match=r"damaged .its content is not what was saved"):
        load(file)


def test_a_file_of_a_format_without_digest_has_to_hold_the_model_it_names(file):
    exchange(file, CLASSIFIER, REGRESSOR)
    relabelled(file, format=1)
    with pytest.raises(DataError, match="saved as MKLClassifier and holds MKLRegressor"):
        load(file)


def test_a_file_without_its_digest_is_damaged(file):
    relabelled(file, digest=None)
    with pytest.raises(DataError, match="damaged"):
        load(file)


def double(A, B):
    return 2.0 * A @ B.T


def test_functions_of_the_user_are_carried_on_trust_only(tmp_path):
    one = kernelweave.MKLClassifier(KernelBank([FromFunction(double)])).fit(X, Y)
    with pytest.raises(TypeError, match="double"):
        save(one, tmp_path / "one.kw")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_and_a_folder_are_one_sentence(tmp_path, model):
    with pytest.raises(DataError, match="no model file"):
        load(tmp_path / "none.kw")
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path)
    with pytest.raises(OSError, match="is a folder"):
        save(model, tmp_path)
    with pytest.raises(OSError, match="cannot be written"):
        save(model, tmp_path / "none" / "model.kw")


class Disk(io.BytesIO):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, _):
        raise self.error


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_what_goes_wrong_while_writing_leaves_the_old_file(file, model, monkeypatch, error, step):
    before = file.read_bytes()

    def fail(*_):
        raise error

    def failing_file(number, mode, **_):
        os.close(number)
        return Disk(error)

    monkeypatch.setattr(os, *(("fdopen", failing_file) if step == "write" else (step, fail)))
    with pytest.raises(type(error)):
        save(model, file)
    monkeypatch.undo()
    assert file.read_bytes() == before
    assert [entry.name for entry in file.parent.iterdir()] == ["model.kw"]
