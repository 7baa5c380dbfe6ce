"""The page is one file, complete, harmless whatever the data are called, and its numbers are right."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from sklearn.pipeline import make_pipeline
from tests.report.samples import BANK, THREE, TWO, VIEWS
from tests.report.samples import X as TABLE

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

import kernelweave as kw
from kernelweave import KernelBank
from kernelweave.kernels import Gaussian, Linear
from kernelweave.report import gather_findings
from kernelweave.report.page import _scores, _views, _weights, number, three_decimals

rng = np.random.default_rng(0)
N = 60
EVIL = "</script><script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(2)>"
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Reader(HTMLParser):
    """Reads a page as a browser does: tags, ids, scripts, text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.ids, self.scripts, self.texts, self.open = [], [], [], [], []
        self.sources = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.tags.append((tag, named))
        if "id" in named:
            self.ids.append(named["id"])
        self.sources += [named[key] for key in ("src", "href", "xlink:href", "data") if key in named]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += text
        elif not self.open or self.open[-1] != "style":
            self.texts.append(text)


def page_of(model, X, y, folder, **how):
    file = kw.write_report(model.fit(X, y), X, y, folder / "r.html", cv=2, n_resamples=2, **how)
    return file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A table whose columns, views, labels, rows and title are all attacks."""
    X = pd.DataFrame(rng.normal(size=(N, 4)), columns=[EVIL, "$x^$", '"><b>', "&lt;"])
    y = np.where(X.iloc[:, 0] + X.iloc[:, 2] > 0, EVIL, IMAGE)
    bank = KernelBank.per_view([Linear(), Gaussian()], views={EVIL: [0, 1], "$_x^$ " * 30: [2], "_": [3]})
    samples = [f"{k}{IMAGE}" for k in range(N)]
    page = page_of(
        kw.MKLClassifier(bank),
        X,
        y,
        tmp_path_factory.mktemp("page"),
        samples=samples,
        title=EVIL,
        data={IMAGE: EVIL},
    )
    return page, Reader(page)


def test_text_of_the_data_stays_text(hostile):
    _, read = hostile
    assert [tag for tag, _ in read.tags].count("script") == 2
    assert not any(tag == "img" for tag, _ in read.tags)
    assert not any(key.startswith("on") for _, named in read.tags for key in named)
    assert any(EVIL in text for text in read.texts)
    assert any(IMAGE in text for text in read.texts)
    assert "alert" not in read.scripts[1]
    steps = json.loads(read.scripts[0])
    assert f"{EVIL}·linear" in steps["names"]
    assert read.open == []


def test_the_page_asks_for_nothing_and_allows_only_its_own_script(hostile):
    page, read = hostile
    assert all(source.startswith(("#", "data:")) for source in read.sources)
    (policy,) = [n["content"] for tag, n in read.tags if n.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page


def test_it_can_be_read_without_seeing(hostile):
    _, read = hostile
    assert len(read.ids) == len(set(read.ids))
    pictures = [named for tag, named in read.tags if tag == "svg"]
    assert len(pictures) >= 6
    for named in pictures:
        assert named["role"] == "img"
        assert named["aria-labelledby"] in read.ids
    named = dict(read.tags)
    assert named["html"]["lang"] == "en"
    assert any(tag == "label" and attrs["for"] == "slider" for tag, attrs in read.tags)
    assert any(tag == "meta" and attrs.get("name") == "viewport" for tag, attrs in read.tags)
    headings = [tag for tag, _ in read.tags if re.fullmatch("h[1-6]", tag)]
    assert headings.count("h1") == 1
    assert [tag for tag, _ in read.tags].count("table") >= 7


def test_it_is_small_whatever_the_number_of_kernels(tmp_path):
    X = rng.normal(size=(N, 4))
    page = page_of(kw.MKLClassifier(KernelBank.per_feature()), X, X[:, 0] > 0, tmp_path)
    assert len(page.encode()) < 5_000_000
    assert "Table of all 65 kernels" in page


@pytest.mark.parametrize("kind", ["three classes", "regression", "obscure", "localized", "one kernel"])
@pytest.mark.filterwarnings("ignore")
def test_every_kind_of_model_has_a_page(kind, tmp_path):
    X = rng.normal(size=(N, 4))
    bank = KernelBank.per_view([Linear()], views={"a": [0, 1], "b": [2, 3]})
    y = np.digitize(X[:, 0], [-0.4, 0.4]) if kind == "three classes" else X[:, 0] > 0
    model = {
        "three classes": kw.MKLClassifier(bank),
        "regression": kw.MKLRegressor(bank),
        "obscure": kw.ObscureClassifier(bank, random_state=0),
        "localized": kw.LocalizedMKLClassifier(bank, n_init=1, random_state=0),
        "one kernel": kw.MKLClassifier(KernelBank([Linear()])),
    }[kind]
    read = Reader(page_of(model, X, X[:, 0] if kind == "regression" else y, tmp_path))
    text = " ".join(read.texts)
    assert {"score", "weights", "views", "path", "held-out", "doubt", "certificate", "data"} <= set(read.ids)
    assert ("Predicted and true" in text) == (kind == "regression")
    assert ("Not shown" in text) == (kind not in ("three classes", "regression"))


def test_a_wrong_number_of_rows_or_names_is_said(tmp_path):
    X = rng.normal(size=(20, 2))
    model = kw.MKLClassifier(KernelBank([Linear()])).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="X has 20 rows and y has 19"):
        kw.write_report(model, X, X[1:, 0] > 0, tmp_path / "r.html")
    with pytest.raises(ValueError, match="2 names of samples for 20 rows"):
        kw.write_report(model, X, X[:, 0] > 0, tmp_path / "r.html", samples=["a", "b"])
    assert list(tmp_path.iterdir()) == []


def test_numbers_are_written_for_people():
    assert [number(x) for x in (0.0, 0.12345, -0.00001, 123456.0, np.inf)] == [
        *("0", "0.1235", "−1.0e−05", "1.2e+05", "∞")
    ]
    assert [three_decimals(x) for x in (-0.0001, -0.5, 0.96836)] == ["0.000", "−0.500", "0.968"]


def test_differences_that_are_the_same_on_every_split_have_a_dash_and_the_reason(tmp_path):
    X = rng.normal(size=(30, 4))
    y = np.arange(30) % 2
    X += 20.0 * y[:, None]  # every method is right everywhere
    bank = KernelBank.per_view([Linear()], views={"a": [0, 1], "b": [2, 3]})
    page = page_of(kw.MKLClassifier(bank), X, y, tmp_path)
    assert page.count("– is no interval: the difference is the same on every split") == 2
    assert "<td>–</td>" in page
    assert ">nan" not in page
    assert "[nan" not in page


def corrected_interval(d, share):
    """Nadeau and Bengio's interval of a mean over k splits that share training rows."""
    k = len(d)
    error = np.sqrt((1.0 / k + share / (1.0 - share)) * np.var(d, ddof=1))
    reach = student.ppf(0.975, k - 1) * error
    return np.mean(d) - reach, np.mean(d) + reach


def test_differences_are_ours_minus_theirs_and_allow_for_shared_rows(found):
    own = np.array(found.comparison.scores["this model"])
    for row in _scores(found)[1:]:
        d = own - np.array(found.comparison.scores[row["name"]])
        assert row["gain"].difference == pytest.approx(d.mean(), abs=1e-12)
        if d.std() > 0.0:
            assert row["gain"].interval == pytest.approx(corrected_interval(d, 1 / 3), rel=0.02)
    for view, cost in found.costs.costs().items():
        d = found.costs.scores - found.costs.without[view]
        assert cost.difference == pytest.approx(d.mean(), abs=1e-12)
        if d.std() > 0.0:
            assert cost.interval == pytest.approx(corrected_interval(d, 1 / 3), rel=0.02)


def test_a_view_weighs_what_its_kernels_weigh_together(found):
    kernels = _weights(found)
    for row in _views(found):
        own = [kernel["weight"] for kernel in kernels if kernel["view"] == row["name"]]
        assert len(own) == 2
        assert row["weight"] == pytest.approx(sum(own))


def test_with_several_classes_kernels_and_views_have_the_same_intervals():
    bank = KernelBank.per_view([Gaussian()], views=VIEWS)
    seen = gather_findings(
        make_pipeline(kw.MKLClassifier(bank, multiclass="per_class")).fit(TABLE, THREE),
        TABLE,
        THREE,
        cv=3,
        n_resamples=12,
    )
    kernels, views = _weights(seen), _views(seen)
    for kernel, view in zip(kernels, views, strict=True):
        assert kernel["spread"][:2] == pytest.approx(view["spread"], abs=1e-12)
    mean = seen.stability.resampled.mean(axis=1)
    share = (mean > 1e-6 * mean.max(axis=1, keepdims=True)).mean(axis=0)
    assert [kernel["spread"][2] for kernel in kernels] == pytest.approx(share.tolist())


def test_a_page_says_when_the_bounds_have_not_met(tmp_path):
    model = kw.MKLClassifier(BANK).fit(TABLE, TWO)
    closed = kw.write_report(model, TABLE, TWO, tmp_path / "a.html", cv=2, n_resamples=2).read_text()
    assert "as good as it can be" in closed
    assert "have not met" not in closed
    model.certificate_ = replace(model.certificate_, lower=0.5 * model.certificate_.lower)
    notes = ["Stopped too early."]
    still = kw.write_report(
        model, TABLE, TWO, tmp_path / "b.html", cv=2, n_resamples=2, notes=notes
    ).read_text()
    assert "have not met" in still
    assert "as good as it can be" not in still
    assert "Stopped too early." in still
