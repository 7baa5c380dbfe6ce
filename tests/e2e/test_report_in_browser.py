"""The report in a browser: opened from disk, moved, darkened, on a phone, and attacked."""

import numpy as np
import pandas as pd
import pytest
from tests.e2e.browser import CHROMIUM, chromium

import kernelweave as kw
from kernelweave import KernelBank
from kernelweave.kernels import Gaussian, Linear

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="needs Chromium: apt-get install --no-install-recommends chromium"
)
ATTACK = "</script><script>window.attacked = 1</script>"
IMAGE = "<img src=x onerror='window.attacked = 2'>"


def written(file, labels=("no", "yes"), views=("size", "shape"), **how):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=["w", "h", ATTACK, "b"])
    y = np.where(X["w"] + X["b"] > 0, *labels)
    bank = KernelBank.per_view([Linear(), Gaussian()], views={views[0]: [0, 1], views[1]: [2, 3]})
    return kw.write_report(kw.MKLClassifier(bank).fit(X, y), X, y, file, cv=3, n_resamples=3, **how)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return written(tmp_path_factory.mktemp("page") / "report.html").as_uri()


@pytest.fixture
def page(browser, plain):
    browser.open(plain)
    return browser


def is_quiet(page, url):
    """No error, no message, no request but for the file itself."""
    assert page.events_named("Runtime.exceptionThrown") == []
    assert page.events_named("Runtime.consoleAPICalled") == []
    assert page.events_named("Log.entryAdded") == []
    requests = {event["request"]["url"] for event in page.events_named("Network.requestWillBeSent")}
    assert {address for address in requests if not address.startswith("data:")} == {url}


def state(page):
    return page.run(
        """(() => {
        const bars = [...document.querySelectorAll("#path .bar")].map(bar => bar.style.width);
        const values = [...document.querySelectorAll("#path .value")].map(value => value.textContent);
        const slider = document.getElementById("slider");
        const line = document.getElementById("path-here").getBoundingClientRect();
        return {bars, values, shown: document.getElementById("reading").textContent, x: line.x,
                spoken: slider.getAttribute("aria-valuetext"), place: Number(slider.value)};
        })()"""
    )


def test_the_slider_moves_weights_line_and_words_by_keyboard(page, plain):
    before = state(page)
    steps = page.run("JSON.parse(document.getElementById('steps').textContent)")
    page.run("document.getElementById('slider').focus()")
    page.press("Home", 36)
    after = state(page)
    assert (before["place"], after["place"]) == (20, 0)
    assert after["values"] == ["0.250"] * 4
    assert after["bars"] == [f"{width}%" for width in steps["steps"][0]["widths"]]
    assert after["values"] != before["values"]
    assert after["shown"].startswith("θ = 0.25: held-out accuracy")
    assert after["spoken"] == after["shown"]
    assert after["x"] < before["x"] - 50
    page.press("ArrowRight", 39)
    assert state(page)["place"] == 1
    page.run("document.querySelector('[data-step]').click()")
    assert state(page) == before
    is_quiet(page, plain)


def ground(page):
    return page.run("getComputedStyle(document.body).backgroundColor")


def test_dark_follows_the_system_and_the_switch(page, plain):
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    light = ground(page)
    ink = page.run("getComputedStyle(document.querySelector('#weights svg text')).fill")
    page.run("document.getElementById('theme').focus()")
    page.press(" ", 32)
    dark = ground(page)
    assert dark != light
    assert page.run("document.getElementById('theme').getAttribute('aria-pressed')") == "true"
    assert page.run("getComputedStyle(document.querySelector('#weights svg text')).fill") != ink
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.run("delete document.documentElement.dataset.theme")
    assert ground(page) == dark
    page.run("document.getElementById('theme').click()")
    assert ground(page) == light
    is_quiet(page, plain)


def contrast(one, other):
    """The ratio of the luminances of two colours, as WCAG defines it."""

    def luminance(colour):
        parts = np.array([float(c) for c in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_letters_stand_out_in_both_themes(page, theme):
    page.run(f"document.documentElement.dataset.theme = '{theme}'")
    card = page.run("getComputedStyle(document.querySelector('section')).backgroundColor")
    for selector in ("section", "section > p", "figcaption", "summary", "#weights svg text", "thead th"):
        name = "fill" if "svg" in selector else "color"
        ink = page.run(f"getComputedStyle(document.querySelector('{selector}')).{name}")
        assert contrast(ink, card) >= 4.5, (selector, ink, card)


def test_nothing_is_wider_than_a_phone(page):
    page.call("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
    try:
        assert page.run("document.documentElement.scrollWidth") <= 360
        smallest = page.run(
            "Math.min(...[...document.querySelectorAll('svg text')]"
            ".map(text => text.getBoundingClientRect().height))"
        )
        assert smallest >= 8
        assert page.run("document.getElementById('slider').getBoundingClientRect().height") >= 40
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("width", [400, 1280])
def test_a_report_on_several_tables_is_no_wider_than_the_screen(browser, tmp_path, width):
    rng = np.random.default_rng(0)
    ids = [f"patient-of-the-northern-clinic-{k:03}" for k in range(60)]
    clinic = pd.DataFrame({"a_name_of_a_column_that_is_rather_long": rng.normal(size=60)}, index=ids)
    clinic["ward"] = ["north", "south", None] * 20
    blood = pd.DataFrame(rng.normal(size=(45, 30)), index=ids[15:]).add_prefix("measurement_of_the_blood_")
    views = kw.Views.join({"clinic": clinic, "blood": blood})
    y = np.where(rng.normal(size=60) > 0, "ill", "well")
    model = kw.MKLClassifier(KernelBank.by_type(scales=[1.0])).fit(views, y)
    browser.open(kw.write_report(model, views, y, tmp_path / "r.html", cv=2, n_resamples=2).as_uri())
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    try:
        assert browser.run("document.documentElement.scrollWidth") <= width
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("width", [700, 1000])
def test_the_table_of_scores_fits_on_a_small_screen(page, width):
    size = {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": False}
    page.call("Emulation.setDeviceMetricsOverride", **size)
    try:
        room, needed = page.run(
            "(box => [box.clientWidth, box.scrollWidth])(document.querySelector('#score .scroll'))"
        )
        assert needed <= room
        lines = page.run(
            """[...document.querySelectorAll("#score tbody th")].map(cell => {
            const range = document.createRange();
            range.selectNodeContents(cell);
            return [cell.textContent, range.getClientRects().length];
            })"""
        )
        assert dict(lines)["concatenation"] == 1
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


def test_a_screen_reader_has_names_for_all_there_is(page):
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    found = {}
    for node in nodes:
        if not node.get("ignored"):
            found.setdefault(node["role"].get("value"), []).append(node.get("name", {}).get("value", ""))
    assert found["slider"] == ["θ"]
    assert "Dark" in found["button"]
    pictures = found.get("image", []) + found.get("img", []) + found.get("SvgRoot", [])
    assert len(pictures) >= 6
    for role in ("link", "button", "table", "region", "navigation"):
        assert all(found[role]) or role == "table"
    assert all(pictures)
    assert len([name for name in found["heading"] if name]) >= 9


def test_names_from_the_data_do_no_harm(browser, tmp_path):
    names = {"labels": (ATTACK, IMAGE), "views": (ATTACK, IMAGE), "title": ATTACK}
    file = written(tmp_path / "attacked.html", samples=[f"{IMAGE}{k}" for k in range(60)], **names)
    browser.open(file.as_uri())
    assert browser.run("window.attacked") is None
    assert browser.run("document.querySelectorAll('script').length") == 2
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert ATTACK in browser.run("document.querySelector('h1').textContent")
    assert IMAGE in browser.run("document.querySelector('#views tbody').textContent")
    assert IMAGE[:12] in browser.run("document.querySelector('#doubt svg').textContent")
    before = state(browser)
    browser.run("document.getElementById('slider').focus()")
    browser.press("Home", 36)
    assert state(browser)["values"] != before["values"]
    is_quiet(browser, file.as_uri())
