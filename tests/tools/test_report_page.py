"""The report page in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import PROGRAM, REASON, Chromium
from report_models import HOSTILE, MACHINE, impossible, network, nothing
from shared_material import REPOSITORY, SHARED

from onert import frontend
from onert.compiler import Options
from onert.ir import Package
from onert.tools.model_report.document import document
from onert.tools.model_report.report import report

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=REASON)
TABS = ("overview", "graph", "tensors", "memory", "time", "roofline")
DRAWN = """(() => { const c = document.querySelector('#panels canvas'); if (!c) return true;
  const blank = document.createElement('canvas'); blank.width = c.width; blank.height = c.height;
  return c.width > 0 && c.toDataURL() !== blank.toDataURL(); })()"""
"""Whether the first chart of the current tab has been drawn; true if it has none."""
VIEW = "panel('graph', state.side).view"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """URLs of pages for a real model, two models side by side, hostile names, and models with little to show."""
    folder = tmp_path_factory.mktemp("pages")
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr("onert.tools.model_report.report.machine", lambda threads: MACHINE)
    monkeypatch.setattr("onert.tools.model_report.times.running.SECONDS", 0.0)
    digits = REPOSITORY / "nnpackage" / "examples" / "digits_float"
    package = frontend.load(digits)

    def report_of(model: Package, path: Path = Path("model"), **options: Any) -> dict[str, Any]:
        return report(path, model, Options(num_threads=1, **options), profile=True)

    one = report_of(package, digits)
    hostile = report_of(network(word="".join(w for w in HOSTILE.values() if len(w) < 999)))
    hostile["model"]["labels"] = [{"file": w, "count": 2, "labels": [w, w]} for w in HOSTILE.values()]
    hostile["model"]["notes"] = [*HOSTILE.values()]
    hostile["options"]["workspace_dir"] = "".join(HOSTILE.values())
    reports = {
        "one": [one],
        "two": [one, report_of(package, digits, backends=("reference",))],
        "hostile": [hostile],
        "plain": [report_of(network())],
        "impossible": [report_of(impossible())],
        "unprofiled": [report(digits, package, Options(num_threads=1), profile=False)],
        "empty": [report_of(nothing())],
    }
    monkeypatch.undo()
    found = {}
    for name, each in reports.items():
        path = folder / f"{name}.html"
        path.write_text(document(each), encoding="utf-8")
        found[name] = path.as_uri()
    return found


def opened(browser: Chromium, url: str, *, width: int = 1280, height: int = 800, theme: str = "light") -> Chromium:
    browser.size(width, height)
    browser.theme(theme)
    browser.errors.clear()
    browser.requests.clear()
    browser.call("Page.navigate", url="about:blank")
    browser.open(url)
    return browser


def shown(browser: Chromium, tab: str) -> str:
    """Switch to a tab of the report; returns its text."""
    browser.run(f"document.getElementById('tab-{tab}').click()")
    browser.wait(DRAWN)
    return str(browser.run("document.getElementById('panels').innerText"))


@pytest.mark.parametrize(
    ("page", "width", "theme"),
    [
        ("one", 1280, "light"),
        ("one", 390, "dark"),
        ("two", 1280, "dark"),
        ("two", 390, "light"),
        ("unprofiled", 1280, "light"),
        ("impossible", 1280, "light"),
        ("impossible", 390, "dark"),
        ("empty", 1280, "dark"),
    ],
)
def test_every_tab_is_filled_without_errors(
    browser: Chromium, pages: dict[str, str], page: str, width: int, theme: str
) -> None:
    opened(browser, pages[page], width=width, theme=theme)
    for tab in TABS:
        words = shown(browser, tab)
        assert len(words) > 40, tab
        assert "[object" not in words
        assert "undefined" not in words
        assert "NaN" not in words
        assert browser.run("document.documentElement.scrollWidth <= innerWidth"), tab
    assert browser.errors == []
    assert {url.partition(":")[0] for url in browser.requests} <= {"file", "about"}


def test_hostile_names_are_not_executed(browser: Chromium, pages: dict[str, str]) -> None:
    count = "JSON.stringify([...document.querySelectorAll('*')].map((e) => e.localName).filter((n) => "
    count += "['script', 'img', 'iframe', 'style', 'link', 'object', 'form', 'body'].includes(n)))"
    opened(browser, pages["plain"])
    plain = browser.run(count)
    opened(browser, pages["hostile"])
    for tab in TABS:
        shown(browser, tab)
        assert browser.run(count) == plain
    shown(browser, "graph")
    browser.run("document.getElementById('find').focus()")
    browser.type("img")
    browser.wait("!document.getElementById('found').hidden")
    browser.key("Enter")
    browser.wait("document.querySelector('.detail h2')")
    assert browser.run(count) == plain
    assert browser.run("window.hit") is None
    assert browser.errors == []


def test_the_content_security_policy_blocks_scripts_and_requests(browser: Chromium, pages: dict[str, str]) -> None:
    opened(browser, pages["one"])
    added = "{ const s = document.createElement('script'); s.textContent = 'window.hit = 1'; document.body.append(s); }"
    browser.run(added)
    browser.run("document.createElement('div').innerHTML = '<img src=x onerror=window.hit=1>'")
    assert browser.run("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"
    assert browser.run("window.hit") is None
    assert any("Content Security Policy" in error for error in browser.errors)


def test_search_finds_operations_and_goes_to_them(browser: Chromium, pages: dict[str, str]) -> None:
    opened(browser, pages["one"])
    browser.key("/")
    browser.type("no such thing")
    browser.wait("document.getElementById('found').innerText.includes('No matches')")
    browser.run("{ const f = document.getElementById('find'); f.value = ''; f.focus(); }")
    browser.type("fully")
    browser.wait("document.querySelectorAll('#found li b').length > 0")
    browser.key("Enter")
    browser.wait("(document.querySelector('.detail h2') || {}).textContent?.includes('FullyConnected')")
    assert browser.run("state.tab") == "graph"
    assert "Runs on" in browser.run("document.querySelector('.detail').innerText")
    assert "could run it, but comes later" in browser.run("document.querySelector('.detail').innerText")


def test_groups_can_be_collapsed_and_expanded(browser: Chromium, pages: dict[str, str]) -> None:
    opened(browser, pages["plain"])
    shown(browser, "graph")
    browser.wait(f"{VIEW}.found")
    folded = browser.run(f"{VIEW}.found.nodes.filter((n) => n.kind === 'group' && !n.open).length")
    assert folded > 0
    tall = browser.run(f"{VIEW}.found.h")
    browser.run(f"{VIEW}.canvas.focus()")
    browser.run(f"{VIEW}.select({VIEW}.node((n) => n.kind === 'group'), {{ go: true }})")
    browser.key("Enter")
    browser.wait(f"{VIEW}.found.nodes.some((n) => n.open)")
    assert browser.run(f"{VIEW}.found.h") > tall
    browser.key("Enter")
    browser.wait(f"!{VIEW}.found.nodes.some((n) => n.open)")
    browser.key("e")
    browser.wait(f"{VIEW}.found.nodes.filter((n) => n.kind === 'group' && n.open).length === {folded}")
    browser.key("e")
    browser.wait(f"{VIEW}.found.nodes.every((n) => !n.open)")
    assert browser.run(f"{VIEW}.found.h") == tall


def test_bodies_of_loops_and_branches_expand_in_place(browser: Chromium, pages: dict[str, str], tmp_path: Path) -> None:
    path = SHARED / "models" / "generated-keras" / "cf_while_cond_fp32.tflite"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    page = tmp_path / "page.html"
    page.write_text(document([report(path, frontend.load(path), Options(num_threads=1), profile=False)]), "utf-8")
    opened(browser, page.as_uri())
    shown(browser, "graph")
    browser.run("document.querySelector('.stage').click()")
    browser.wait("document.querySelector('.stage.now').textContent.startsWith('As in the file')")
    browser.run(f"{VIEW}.canvas.focus()")
    for title in ("While", "If"):
        browser.run(f"{VIEW}.select({VIEW}.node((n) => n.title === '{title}'), {{ go: true }})")
        browser.key("Enter")
        browser.wait(f"{VIEW}.node((n) => n.title === '{title}').inner")
    assert browser.run(f"{VIEW}.node((n) => n.depth === 1 && n.title === 'FullyConnected') !== undefined")
    assert browser.run("document.querySelectorAll('[aria-label=Subgraph] option').length") == 5
    assert browser.errors == []


def test_keys_step_through_the_compiler_s_stages(browser: Chromium, pages: dict[str, str]) -> None:
    opened(browser, pages["one"])
    shown(browser, "graph")
    count = browser.run("document.querySelectorAll('.stage').length")
    assert count >= 2
    browser.run(f"{VIEW}.canvas.focus()")
    for _ in range(count):
        browser.key("[")
    browser.wait("document.querySelector('.stage.now').textContent.startsWith('As in the file')")
    for _ in range(count):
        browser.key("]")
    browser.wait("document.querySelector('.stage.now').textContent.startsWith('As compiled')")
    assert browser.errors == []


def test_the_graph_can_be_zoomed_and_panned(browser: Chromium, pages: dict[str, str]) -> None:
    opened(browser, pages["one"])
    shown(browser, "graph")
    corner = f"(() => {{ const r = {VIEW}.canvas.getBoundingClientRect(); return [r.x, r.y]; }})()"
    box = [place + 200 for place in browser.run(corner)]
    before = browser.run(f"{VIEW}.view")
    browser.wheel(*box, -300, control=True)
    browser.wait(f"{VIEW}.view.k > {before['k']}")
    browser.wheel(*box, 200)
    browser.wait(f"{VIEW}.view.y !== {before['y']}")
    browser.run(f"{VIEW}.canvas.focus()")
    for key, changes in (("ArrowDown", "y"), ("ArrowRight", "x"), ("-", "k"), ("+", "k"), ("f", "k")):
        now = browser.run(f"{VIEW}.view")
        browser.key(key)
        browser.wait(f"{VIEW}.view.{changes} !== {now[changes]}")
    browser.key("j")
    browser.wait("document.querySelector('.detail h2')")
    assert browser.errors == []


def test_keys_select_tabs_themes_and_sides(browser: Chromium, pages: dict[str, str]) -> None:
    opened(browser, pages["two"])
    for at, tab in enumerate(TABS):
        browser.key(str(at + 1))
        assert browser.run("state.tab") == tab
        assert browser.run("document.querySelector('#tabs [aria-selected=true]').dataset.tab") == tab
    ground = "getComputedStyle(document.body).backgroundColor"
    light = browser.run(ground)
    browser.key("t")
    assert browser.run(ground) != light
    assert browser.run("document.querySelectorAll('.panel').length") == 2
    browser.key("s")
    assert browser.run("document.querySelectorAll('.panel').length") == 1
    browser.key("?")
    assert browser.run("document.getElementById('keys').open")
    assert browser.errors == []


def test_differences_between_two_reports_are_marked(browser: Chromium, pages: dict[str, str]) -> None:
    opened(browser, pages["two"])
    rows = browser.run("[...document.querySelectorAll('tr.differs')].map((r) => r.innerText)")
    assert any("llvm" in row and "reference" in row for row in rows)
    assert not any(row.startswith("Parameters") for row in rows)
