"""`cellar site build` says what it wrote, where to look, and why it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.site.folder import SiteFolder
from store import Element, Store
from tests.e2e.workplace import Workplace

Cellar = Callable[..., tuple[int, str, str]]


@pytest.fixture
def store(workplace: Path) -> Store:
    store = Store.create("file:build/store")
    store.pin(store.publish([Element("skill", "greet", b"x", media="text/plain")], message="m"), message="p")
    return store


def test_a_site_is_written_where_it_is_asked_for(cellar: Cellar, store: Store, workplace: Path) -> None:
    code, out, err = cellar("site", "build", "--out", "pages", "--quiet")
    assert (code, err) == (0, "")
    assert "1 snapshot, 1 element" in out
    assert "open pages/index.html" in out
    assert "skill/greet" in (workplace / "pages/elements.html").read_text()


def test_json_has_the_figures(cellar: Cellar, store: Store) -> None:
    code, out, _ = cellar("site", "build", "--json", "--no-text")
    result = json.loads(out)
    assert code == 0
    assert result["out"] == "build/site"
    assert (result["snapshots"], result["elements"], result["commit"]) == (1, 1, 2)
    assert result["files"] > 8
    assert result["bytes"] > 10_000


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("--out", "build"), 2, "holds other files"),
        (("--no-runs", "--out", "/"), 2, "no folder of its own"),
        (("--no-runs", "--out", "/proc/zz"), 3, "no folder can be made"),
        (("--no-runs", "--out", "s" * 252), 3, "no folder can be made"),
        (("--no-runs", "--out", "s" * 300), 2, "too long for a path"),
        (("--no-runs", "--out", "~nobody-of-that-name/x"), 2, "no home folder"),
        (("--head", "nowhere"), 4, "no head nowhere"),
        (("--snapshots", "-1"), 2, "snapshots"),
    ],
)
def test_what_cannot_be_written_is_refused_in_a_sentence(
    cellar: Cellar, store: Store, arguments: tuple[str, ...], code: int, reason: str
) -> None:
    ended, _, err = cellar("site", "build", *arguments)
    assert ended == code
    assert reason in err


def test_a_folder_of_others_is_refused_before_anybody_is_asked_for_runs(
    cellar: Cellar, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("somebody was asked for runs")

    monkeypatch.setattr("flows.cli.site._runs", asked)
    assert cellar("site", "build", "--out", "build")[0] == 2


def test_another_build_at_work_is_a_conflict(cellar: Cellar, store: Store, workplace: Path) -> None:
    with SiteFolder(workplace / "build/site"):
        code, _, err = cellar("site", "build")
    assert code == 7
    assert "another `cellar site build`" in err


def test_an_interrupted_build_says_that_the_old_site_is_there(
    cellar: Cellar, store: Store, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cellar("site", "build")[0] == 0
    before = (workplace / "build/site/index.html").read_bytes()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flows.site.elements.Elements.write", interrupt)
    code, _, err = cellar("site", "build")
    assert code == 130
    assert "build/site is as it was" in err
    assert (workplace / "build/site/index.html").read_bytes() == before


def test_runs_of_a_real_api_are_on_the_page(
    cellar: Cellar, store: Store, workplace: Path, prefect_server: str
) -> None:
    from flows.engine import flow

    def fails() -> None:
        raise ValueError("the source <b>is gone</b>")

    with pytest.raises(ValueError, match="the source"):
        flow(fails, name="nightly-of-the-site")()
    code, _, err = cellar("site", "build", "--quiet")
    assert (code, err) == (0, "")
    page = (workplace / "build/site/runs.html").read_text()
    row = next(row for row in page.split("<tr>") if "nightly-of-the-site" in row)
    assert "Failed" in row
    assert "the source &lt;b&gt;is gone&lt;/b&gt;" in row


def test_an_api_that_does_not_answer_is_said_and_the_site_is_there(
    store: Store, workplace: Path, tmp_path: Path
) -> None:
    place = Workplace(workplace, {"PREFECT_HOME": str(tmp_path / "prefect")})
    ended = place.cellar(
        *("site", "build", "--quiet", "--store", store.url), PREFECT_API_URL="http://127.0.0.1:9/api"
    )
    assert ended.code == 0, ended.err
    assert "the runs of flows are left out" in ended.err
    assert "No Prefect API was asked" in (workplace / "build/site/runs.html").read_text()
