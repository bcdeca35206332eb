"""A site says what the store says, whoever wrote it; equal states give equal bytes; links lead somewhere."""

import json
import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from flows.runs.listing import Run
from flows.site import SiteOptions, build_site, changes
from flows.site.evaluations import read_evaluations
from store import Element, Snapshot, Store, canonical_json
from store.errors import SnapshotNotFound
from tests.flows.report.test_report import Page as Markup
from tests.flows.site.conftest import CHANGED, DROPPED, ENEMY, HOSTILE, NEW, RIGHT_TO_LEFT, TEXTS

Filled = tuple[Store, Snapshot, Snapshot]
URL_ATTRIBUTES = ("href", "src", "action")


class Page(Markup):
    """A page of a site with its ids and addresses; its cells do not run into each other."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.read_text(encoding="utf-8"))

    @property
    def ids(self) -> set[str]:
        return {str(attributes["id"]) for _, attributes in self.tags if "id" in attributes}

    @property
    def addresses(self) -> Iterator[str]:
        for _, attributes in self.tags:
            yield from (str(attributes[name]) for name in URL_ATTRIBUTES if name in attributes)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        self.text += " " if tag in ("td", "th", "dd", "code", "br") else ""


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def element_page(site: Path, name: str) -> str:
    """The article of an element."""
    found = [path.read_text(encoding="utf-8") for path in (site / "elements").glob("*.html")]
    articles = [article for text in found for article in text.split("<article ")[1:]]
    from flows.site.names import anchor

    (article,) = [article for article in articles if article.startswith(f'id="{anchor(name)}"')]
    return article


def test_every_link_leads_to_a_file_and_to_a_place_in_it(pages: dict[Path, Page], site: Path) -> None:
    seen = 0
    for path, page in pages.items():
        for address in page.addresses:
            parts = urlsplit(address)
            assert not parts.scheme, f"{path} asks for {address}"
            assert not parts.netloc, f"{path} asks for {address}"
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path} links {address}"
            assert target.is_relative_to(site)
            if parts.fragment and parts.fragment != "all":
                assert parts.fragment in pages[target].ids, f"{path} links {address}"
            seen += 1
    assert seen > 100


def test_what_an_enemy_wrote_stays_text(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert [tag for tag, _ in page.tags if tag == "script"] == ["script"], path
        assert not [tag for tag, _ in page.tags if tag in ("img", "iframe", "object", "style")], path
        for _, attributes in page.tags:
            assert not [name for name in attributes if name.startswith("on") or name == "style"], path
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2028\u2029]", page.text), path
    text = "".join(page.text for page in pages.values())
    assert ENEMY in text
    assert "⟨U+202E⟩" in text


def test_headings_have_an_order_and_every_page_its_landmarks(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1, path
        assert levels.count(1) == 1, path
        assert all(after - before <= 1 for before, after in pairwise(levels)), path
        assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in page.tags}, path
        assert all(attributes.get("scope") for tag, attributes in page.tags if tag == "th"), path
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert len(ids) == len(set(ids)), path


def test_names_for_the_search_are_data_whatever_they_hold(site: Path) -> None:
    found: set[str] = set()
    for path in (site / "names").glob("*.js"):
        text = path.read_text(encoding="ascii")
        assert not set("<>&") & set(text)
        function, _, rest = text.partition("(")
        values = json.loads(f"[{rest.removesuffix(');' + chr(10))}]")
        if function == "cellarNames":
            for _, joined in values[1]:
                found |= set(joined.split("\n"))
    assert found >= {*TEXTS, NEW, "codec/copying", "evaluation/attachment"}


def test_a_difference_counts_and_lists_what_changed(site: Path, cellar_store: Filled) -> None:
    _, first, second = cellar_store
    page = Page(site / f"differences/{first.id[:16]}-{second.id[:16]}.html")
    changed = re.findall(r"(added|removed|replaced)\s*(memory/\S+)", page.text)
    assert sorted(changed) == [("added", NEW), ("removed", DROPPED), ("replaced", CHANGED)]


def test_a_long_difference_is_paged_and_then_cut_with_the_counts_of_all(
    cellar_store: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, first, second = cellar_store
    monkeypatch.setattr(changes, "PAGE_CHANGES", 1)
    monkeypatch.setattr(changes, "MOST_CHANGES", 2)
    monkeypatch.setattr("flows.site.sections.MOST_CHANGES", 2)
    build_site(store, tmp_path / "site", SiteOptions(text_bytes=0))
    stem = f"{first.id[:16]}-{second.id[:16]}"
    names = sorted(path.name for path in (tmp_path / "site/differences").glob(f"{stem}*"))
    assert names == [f"{stem}-2.html", f"{stem}.html"]
    last = Page(tmp_path / "site/differences" / names[0]).text
    assert re.search(r"The first 2 of \d+ changes are listed", last)


def test_a_snapshot_s_page_has_its_names_kinds_and_figures(site: Path, cellar_store: Filled) -> None:
    _, first, second = cellar_store
    one, two = (Page(site / f"snapshots/{snapshot.id}.html").text for snapshot in (first, second))
    assert "v1" in one
    assert "head:docs" in two
    assert "by head docs" in two
    assert re.search(r"memory\s*8\s", two)
    assert "1.20 1.00 to 1.50" in " ".join(two.split())


def test_the_trend_has_a_point_and_an_interval_for_each_evaluation(site: Path) -> None:
    text = (site / "evaluations.html").read_text(encoding="utf-8")
    panel = re.search(r'<svg[^>]*aria-label="Log loss, retrieved:(.*?)".*?</svg>', text, re.DOTALL)
    assert panel is not None
    assert "1.50 (1.30 to 1.80)" in panel[1]
    assert "1.20 (1.00 to 1.50)" in panel[1]
    assert panel[0].count('class="dot"') == panel[0].count('class="whisker"') == 2


def test_a_memory_s_page_shows_what_it_decodes_to(site: Path) -> None:
    article = element_page(site, "memory/python.lambda")
    assert "mean confidence of the decoder" in article
    page_text = re.sub("<[^>]*>", "", article.split('class="decoded"')[1].partition(">")[2])
    assert " ".join(TEXTS["memory/python.lambda"].split())[:60].split()[3] in page_text
    assert "marzipan" in element_page(site, HOSTILE)
    assert "שלום" in element_page(site, RIGHT_TO_LEFT)


def test_an_element_that_left_keeps_its_text_and_says_who_holds_it(site: Path, cellar_store: Filled) -> None:
    article = element_page(site, DROPPED)
    assert 'class="decoded"' in article
    assert cellar_store[1].id in article
    assert cellar_store[2].id not in article


def test_texts_can_be_left_out_and_limited_and_pages_say_so(cellar_store: Filled, tmp_path: Path) -> None:
    none = build_site(cellar_store[0], tmp_path / "none", SiteOptions(text_bytes=0))
    few = build_site(cellar_store[0], tmp_path / "few", SiteOptions(text_bytes=500))
    assert (none.texts, few.texts + few.texts_left_out) == (0, 9)
    assert 1 <= few.texts <= 3
    assert "without texts" in element_page(tmp_path / "none", NEW)
    assert "the size that they may have in all" in element_page(tmp_path / "few", NEW)


def test_the_same_state_gives_the_same_bytes_and_unchanged_files_stay(
    cellar_store: Filled, site: Path, tmp_path: Path
) -> None:
    out = tmp_path / "again"
    build_site(cellar_store[0], out, SiteOptions())
    files = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(site) for path in site.rglob("*") if path.is_file())
    assert all((out / name).read_bytes() == (site / name).read_bytes() for name in files)
    before = {name: (out / name).stat().st_ino for name in files}
    build_site(cellar_store[0], out, SiteOptions())
    changed = {str(name) for name in files if (out / name).stat().st_ino != before[name]}
    assert changed <= {"cellar-site.json"}


def test_only_a_head_s_snapshots_and_only_the_newest_can_be_chosen(
    cellar_store: Filled, tmp_path: Path
) -> None:
    store, first, second = cellar_store
    build_site(store, tmp_path / "head", SiteOptions(head="docs", text_bytes=0))
    shown = {path.stem for path in (tmp_path / "head/snapshots").glob("*.html")}
    assert shown == {first.id, second.id}
    build_site(store, tmp_path / "newest", SiteOptions(snapshots=1, text_bytes=0))
    assert [path.stem for path in (tmp_path / "newest/snapshots").glob("*.html")] == [second.id]
    assert "1 of 4" in Page(tmp_path / "newest/snapshots.html").text
    with pytest.raises(SnapshotNotFound, match="no head other"):
        build_site(store, tmp_path / "other", SiteOptions(head="other"))
    assert not (tmp_path / "other").exists()


def test_an_empty_store_has_a_site_too(tmp_path: Path) -> None:
    report = build_site(Store.create(f"file:{tmp_path}/store"), tmp_path / "site", SiteOptions())
    assert (report.snapshots, report.elements) == (0, 0)
    assert "Nothing was pinned yet" in Page(tmp_path / "site/index.html").text


def test_what_is_published_during_a_build_comes_with_the_next_one(
    cellar_store: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names come first and in between, as a new version of one that is there, and as an evaluation."""
    copy = tmp_path / "store"
    shutil.copytree(urlsplit(cellar_store[0].url).path, copy)
    store, second = Store.open(f"file:{copy}"), cellar_store[2]
    build_site(store, tmp_path / "before", SiteOptions(text_bytes=0))

    def publish(*given: object) -> object:
        names = ("aaa", "python.if", "python.lambdb", "zzz")
        late = [Element("memory", name, b"late", media="text/plain") for name in names]
        figures = canonical_json({"conditions": {"late": {"nll": 1.0}}})
        provenance = {"snapshot": second.id}
        late.append(Element("evaluation", "late", figures, media="application/json", provenance=provenance))
        Store.open(f"file:{copy}").publish(late, message="late")
        return read_evaluations(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("flows.site.build.read_evaluations", publish)
    tip = store.tip().sequence
    report = build_site(store, tmp_path / "during", SiteOptions(text_bytes=0))

    assert (report.commit, store.tip().sequence) == (tip, tip + 1)
    files = sorted(path.relative_to(tmp_path / "before") for path in (tmp_path / "before").rglob("*.*"))
    assert files == sorted(
        path.relative_to(tmp_path / "during") for path in (tmp_path / "during").rglob("*.*")
    )
    before, during = tmp_path / "before", tmp_path / "during"
    assert [name for name in files if (before / name).read_bytes() != (during / name).read_bytes()] == []
    monkeypatch.undo()
    build_site(store, tmp_path / "after", SiteOptions(text_bytes=0))
    assert "late" in element_page(tmp_path / "after", "memory/aaa")


def test_a_figure_that_no_chart_can_show_is_left_out_and_told(cellar_store: Filled, tmp_path: Path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(urlsplit(cellar_store[0].url).path, copy)
    store, second = Store.open(f"file:{copy}"), cellar_store[2]
    odd = ("1e17", "1e308", "-1e308", "9" * 400, "1e999", "NaN", '{"value": 1e308, "low": -1e308, "high": 1}')
    for number, text in enumerate(odd):
        figures = f'{{"tasks": {text}, "conditions": {{"odd": {{"nll": {text}}}, "fair": {{"nll": 2.0}}}}}}'
        element = Element(
            "evaluation",
            f"odd-{number}",
            figures.encode(),
            media="application/json",
            provenance={"snapshot": second.id},
        )
        store.publish([element], message="odd")
    other = Element(
        "evaluation", "listed", b"{}", media="application/json", provenance={"snapshot": ["a", {}]}
    )
    store.publish([other], message="a snapshot that is a list")
    another = Element(
        "evaluation",
        "addressing",
        b'{"tasks": 3, "table": []}',
        media="application/json",
        provenance={"snapshot": second.id},
    )
    store.publish([another], message="figures that no condition has")
    warnings: list[str] = []

    report = build_site(
        store, tmp_path / "site", SiteOptions(text_bytes=0), warn=lambda w: warnings.append(str(w))
    )

    assert report.snapshots == 4
    assert [warning.split(":")[0] for warning in warnings] == [
        f"evaluation/odd-{number}" for number in (0, 1, 2, 6)
    ]
    text = (tmp_path / "site/evaluations.html").read_text(encoding="utf-8")
    assert text.count('aria-label="Log loss, fair:') == len(odd)
    assert 'aria-label="Log loss, odd:' not in text
    assert "evaluation/addressing" not in text


def test_runs_of_flows_are_told_as_they_ended(cellar_store: Filled, tmp_path: Path) -> None:
    store, first, second = cellar_store

    def run(number: int, flow: str, state: str, seconds: float, **more: str) -> Run:
        given = dict.fromkeys(("deployment", "expected", "snapshot", "reason", "again")) | more
        started = "2026-11-30T21:30:10+00:00"
        return Run(f"{number:08x}" * 4, "name", flow, state=state, started=started, duration=seconds, **given)

    runs = [
        run(10, "nightly", "Failed", 61.0, reason=ENEMY),
        run(11, "update", "Completed", 5.0, snapshot=second.id),
        run(12, "update", "Running", 7.0),
    ]
    build_site(store, tmp_path / "site", SiteOptions(text_bytes=0), runs=runs)
    page = Page(tmp_path / "site/runs.html")
    text = " ".join(page.text.split())
    assert f"0000000a nightly Failed 2026-11-30 21:30 1 min 01 s {ENEMY}" in text
    assert f"0000000b update Completed 2026-11-30 21:30 5.0 s {second.id[:12]}" in text
    assert "7.0 s" not in text
    assert f"snapshots/{second.id}.html" in set(page.addresses)
    assert first.id[:12] in text  # the log stands below


def test_a_head_s_way_is_told_with_who_moved_it_and_why(site: Path, cellar_store: Filled) -> None:
    _, first, second = cellar_store
    text = " ".join(Page(site / "index.html").text.split())
    assert "Where head docs pointed 2 positions" in text
    way = text.split("Where head docs pointed")[1]
    assert way.index(second.id[:12]) < way.index(first.id[:12])
    assert "somebody@somewhere" in way
    assert f"better {ENEMY}" in way


def test_what_is_damaged_is_told_and_the_rest_is_there(cellar_store: Filled, tmp_path: Path) -> None:
    store, _, _ = cellar_store
    copy = tmp_path / "store"
    shutil.copytree(urlsplit(store.url).path, copy)
    row = store.catalog().latest("memory/python.lambda")
    assert row is not None
    (pack,) = copy.glob(f"packs/*/{row.pack}")
    data = bytearray(pack.read_bytes())
    data[row.offset + row.length // 2] ^= 1
    pack.chmod(0o600)
    pack.write_bytes(data)
    (copy / "refs/tags/v1").write_bytes(b"not a tag")
    warnings: list[str] = []
    report = build_site(
        Store.open(f"file:{copy}"), tmp_path / "site", SiteOptions(), warn=lambda w: warnings.append(str(w))
    )
    assert (report.texts, report.texts_left_out) == (8, 1)
    assert "It cannot be read" in element_page(tmp_path / "site", "memory/python.lambda")
    assert 'class="decoded"' in element_page(tmp_path / "site", NEW)
    assert len(warnings) == 1
    assert "refs/tags/v1" in warnings[0]
