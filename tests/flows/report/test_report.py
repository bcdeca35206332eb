"""The report is one safe, self-contained page: hostile texts stay texts, missing sections stay away."""

import json
import re
from copy import deepcopy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.formatting import count, interval, milliseconds, nats, seconds, share, size, visible
from flows.report.examples import agreement
from flows.report.page import write_report
from tests.flows.report.browser_rules import check_laid_out

VOID = {"meta", "br", "link", "img", "hr", "input"}

SUMMARY: dict[str, Any] = json.loads((Path(__file__).parent / "summary.json").read_text(encoding="utf-8"))
REQUIRED = ("documents", "published", "rejected", "snapshot")
OPTIONAL = sorted(set(SUMMARY) - set(REQUIRED))
HOSTILE = (
    "</pre><script>alert(1)</script><img src=\"x\" onerror='a'>"
    "\x1b[31m\x00\u202e\ud800 {{ 7*7 }} $\\frac$ &amp;"
)
SECTIONS = {
    "retrieval",
    "gain",
    "examples",
    "accounting",
    "leakage",
    "addressing",
    "skills",
    "rate",
    "reading",
    "replacement",
}


class Page(HTMLParser):
    """Elements, attributes and text of a page; refuses tags that do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice: {self.get_starttag_text()}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def values(self, attribute: str) -> list[str]:
        return [str(attributes[attribute]) for _, attributes in self.tags if attribute in attributes]


def plain(text: str) -> str:
    """The words of a text with one space between them."""
    return " ".join(text.split())


def hostile(value: Any) -> Any:
    """The same structure with every text, and every free name, replaced by a hostile one."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, list):
        return [hostile(part) for part in value]
    return {name: hostile(part) for name, part in value.items()} if isinstance(value, dict) else value


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the whole summary; tests leave it as it is."""
    return write_report(SUMMARY, tmp_path_factory.mktemp("report"))


@pytest.fixture
def page(written: Path) -> Page:
    return Page(written.read_text(encoding="utf-8"))


def test_the_page_nests_and_its_ids_are_unique(page: Page) -> None:
    ids = page.values("id")

    assert len(ids) == len(set(ids))
    assert page.named("html") == [{"lang": "en"}]
    assert len(page.named("h1")) == 1


def test_the_page_asks_for_nothing_outside_itself(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    page = Page(text)

    assert not re.search(r"https?:|//[a-z]|@import|url\(", text)
    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & {tag for tag, _ in page.tags}
    assert page.values("src") == []
    assert set(page.values("href")) <= {f"#{name}" for name in page.values("id")}


def test_every_table_has_a_caption_and_every_chart_its_words(page: Page) -> None:
    assert len(page.named("table")) == len(page.named("caption")) > 5
    charts = page.named("svg")
    assert len(charts) == 10
    assert all(chart["role"] == "img" and chart["aria-label"] for chart in charts)
    assert any("retrieved 0.69" in str(chart["aria-label"]) for chart in charts)


def test_headline_figures_are_shown_with_their_units(page: Page) -> None:
    text = plain(page.text)

    for figure in ("655", "99.96 %", "1,536 B a block", "99.1 %", "15.0 MiB", "6 min 25 s", "−6.60"):
        assert figure in text


def test_stages_that_were_found_are_named_with_their_times(tmp_path: Path) -> None:
    pages = [
        write_report({**SUMMARY, "found": found}, tmp_path).read_text() for found in ([], ["codec", "core"])
    ]

    said = "Found in the store: codec, core; their times are those of the runs that did the work."
    assert [said in page for page in pages] == [False, True]
    assert "Found in the store" not in pages[0]


def test_families_are_told_apart(page: Page) -> None:
    order = [
        page.text.rindex(text)
        for text in ("the core alone, no memory", "system found itself", "not a result")
    ]

    assert order == sorted(order)


def test_equal_summaries_give_equal_bytes(tmp_path: Path) -> None:
    def backwards(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: backwards(value[name]) for name in reversed(value)}
        return value

    write_report(SUMMARY, tmp_path / "a")
    write_report(backwards(json.loads(json.dumps(SUMMARY))), tmp_path / "b")

    for path in sorted((tmp_path / "a").rglob("*.*")):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes(), path


def test_hostile_texts_are_shown_and_never_markup(tmp_path: Path) -> None:
    summary = hostile(deepcopy(SUMMARY))
    summary["params"] = {HOSTILE: HOSTILE}
    summary["stages"][HOSTILE] = 3.0
    summary["nll"][HOSTILE] = 5.0
    summary["corpus"]["reasons"] = {HOSTILE: 2}
    summary["tasks"]["by_kind"] = {HOSTILE: 2}
    summary["reading"]["conditions"][HOSTILE] = {"family": HOSTILE, "nll": 5.0}
    summary["replacement"]["by_condition"][HOSTILE] = {"expected": 2, "changed": 2}
    summary["replacement"]["answers"][0]["written"][HOSTILE] = {"before": HOSTILE, "after": HOSTILE}

    path = write_report(summary, tmp_path)

    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    assert page.values("onerror") == []
    assert "␛[31m␀⟨U+202E⟩⟨U+D800⟩ {{ 7*7 }} $\\frac$ &amp;" in page.text
    for chart in (tmp_path / "plots").glob("*.svg"):
        names = {element.tag.rpartition("}")[2] for element in ET.parse(chart).iter()}
        assert names <= {"svg", "defs", "style", "g", "path", "text"}


def test_scores_with_and_without_near_duplicates_stand_side_by_side(page: Page) -> None:
    text = plain(page.text)

    assert "documents of the tasksall that training and tuning saw241 42 17.4 % 184 76.3 % 20.4 %" in text
    assert "retrieved500 142 75" in text
    assert "all tasks500 tasks, 241 documents without near-duplicates419 tasks, 199 documents" in text
    assert "retrieved 0.035 0.010 to 0.068 0.022 0.007 to 0.046 –" in text


def test_recall_stands_beside_the_share_of_changed_tokens(page: Page) -> None:
    text = plain(page.text)
    [words] = [
        plain(str(chart["aria-label"]))
        for chart in page.named("svg")
        if "as tokens of the cue change" in str(chart["aria-label"])
    ]

    assert "indexes and reranker: 0 % changed 99.1 %, 20 % changed 98.8 %; BM25: 0 % changed 92.2 %" in words
    assert "1,997 cues were cut from 241 documents" in text
    assert "29 cues stand word for word in another document" in text
    assert "20 %99.9 % 99.7 % to 100.0 % 98.8 % 98.1 % to 99.4 %" in text


def test_skills_are_told_by_interface_and_range(page: Page) -> None:
    text = plain(page.text)

    assert "beyond those of training2,000100.0 %" in text
    assert "positional skill attachedbeyond those of training 2,000" in text
    assert "global skill attachedseen in training" in text
    assert "positionalbeyond those of training another value" in text


def test_smaller_cells_are_told_with_what_they_lose(page: Page) -> None:
    text = plain(page.text)
    [words] = [
        plain(str(chart["aria-label"]))
        for chart in page.named("svg")
        if "as cells take fewer bytes" in str(chart["aria-label"])
    ]

    assert "bfloat16: 128 B a block 17.4 %, 256 B a block 43.1 %" in words
    assert "int4: 36 B a block 9.6 %" in words
    assert "768 numbers in int4: 388 B a block, 100.0 %" in text
    assert "bfloat16 64128 B 17.4 %" in text


def words_of(page: Page, title: str) -> str:
    """The words of the one chart of that title."""
    charts = [plain(str(chart["aria-label"])) for chart in page.named("svg")]
    [words] = [words for words in charts if words.startswith(f"{title}.")]
    return words


def test_reading_is_told_by_family_with_intervals_weights_and_bytes(page: Page) -> None:
    text = plain(page.text)
    losses, exact = (words_of(page, f"{what} without an alignment") for what in ("Log loss", "Exactly right"))

    assert "Standalone: none 4.69; External memory: retrieved 0.06, raw text 0.07; Oracle diagnos" in losses
    assert "External memory: retrieved 95.6 %, raw text 95.2 %" in exact
    assert "500 tasks from 241 documents were asked by the words of their prompts alone" in text
    assert "the states of 4 elements itself" in text
    assert "Wrong elements are drawn at random." in text
    assert "0.057 0.032 to 0.08795.6 % 93.6 % to 97.4 % 0.992 99.0 % 97.4 KiB118 ms" in text
    assert "what wrong elements cost, weighed0.001 0.000 to 0.001 nats" in text


def test_wrong_elements_that_are_near_are_told_from_drawn_ones(tmp_path: Path) -> None:
    near = {**SUMMARY, "reading": {**SUMMARY["reading"], "wrong": "nearest"}}

    text = plain(Page(write_report(near, tmp_path).read_text(encoding="utf-8")).text)

    assert "Wrong elements are the nearest other ones that the words find." in text


def test_a_replacement_is_told_with_what_changed_and_what_edited_answers_became(page: Page) -> None:
    text = plain(page.text)

    assert "had to change: none 0, retrieved 3, raw text 3, right 3, wrong, forced 2" in words_of(
        page, "Results that change with the replaced memory"
    )
    assert "after: none 4.69, retrieved 0.09, raw text 0.10" in words_of(page, "Log loss before and after")
    assert "3 of its 7 blocks hold other cells" in text
    assert "16 are shown the memory, 14 had to change and 14 did: exactly those." in text
    assert "Of the 3,465 results of other tasks 0 differ in any bit." in text
    assert "retrieved33 0.0345 0.0942" in text
    assert "new version with the given axis, and the shape" in text


def test_answers_before_and_after_are_marked_by_what_the_version_of_that_time_says(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    article = text[text.index("raw text, before</dt>") : text.index("right, before</dt>")]

    assert '<mark class="right"> successfully, the result is an aggregate list</mark></dd>' in article
    assert '<mark class="right"> with the given axis, and</mark><mark class="wrong"> a</mark>' in article


@pytest.mark.parametrize(("exact", "said"), [(False, "not exactly those."), (None, "and 14 did.")])
def test_a_replacement_that_changed_something_else_says_so(
    exact: bool | None, said: str, tmp_path: Path
) -> None:
    other = {**SUMMARY, "replacement": {**SUMMARY["replacement"], "exact": exact}}

    assert said in plain(Page(write_report(other, tmp_path).read_text(encoding="utf-8")).text)


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("reading", {"conditions": {"none": {"family": 3}, "odd": {"nll": "x"}, "right": None}}),
        ("reading", {"conditions": {"none": {"nll": {"low": 1}}}, "gain": {"intervals": [3]}, "tasks": []}),
        ("replacement", {"replaced": "memory/a", "by_condition": {"none": None, "odd": {"nll": 3}}}),
        (
            "replacement",
            {
                "replaced": "memory/a",
                "by_condition": {"none": {"expected": "x"}},
                "versions": {"before": 3},
                "follows": {"right": 7, "odd": {"tasks": 1}},
                "answers": [None, {"written": {"right": {"before": 3}, "odd": None}, "new": 7}],
            },
        ),
        ("rate", {"points": [None, {"width": 3}, {"width": "x", "dtype": 3}]}),
        (
            "rate",
            {
                "points": [
                    {"width": 3, "dtype": "odd", "bytes_per_block": 7, "token_recall": 0.5, "by_rarity": [3]}
                ],
                "smallest": {"least_recall": 0.9, "point": None},
            },
        ),
        ("addressing", {"table": [None, 3, {"kind": 3}]}),
        ("addressing", {"table": [{"kind": "all", "searcher": "odd", "corruption": 0.5}]}),
        ("addressing", {"table": {"kind": "all"}, "tasks": "many"}),
        ("skills", {"routing": {"train": None, "odd": {"n": "x", "operation": 7}}}),
        ("skills", {"families": {"standalone": {"none": {"train": {}}}, "intervention": []}}),
        (
            "skills",
            {"routing": [], "families": {"intervention": {"global": {"train": {"differs": {"n": 3}}}}}},
        ),
    ],
)
def test_evaluations_of_another_form_are_shown_as_far_as_they_go(
    name: str, figures: dict[str, Any], tmp_path: Path
) -> None:
    page = Page(write_report({**SUMMARY, name: figures}, tmp_path).read_text(encoding="utf-8"))

    assert set(page.values("href")) <= {f"#{name}" for name in page.values("id")}
    assert not re.search("None|Undefined", page.text)


@pytest.mark.parametrize(
    "audit",
    [
        {"scores": {"all": None}},
        {"scores": {"all": {"tasks": "x", "conditions": {"none": 3}, "gain": 7}}, "settings": []},
        {"scores": {"all": {}}, "comparisons": [None, {"of": 3, "ngrams": 0}]},
    ],
)
def test_an_audit_of_another_form_is_shown_as_far_as_it_goes(audit: dict[str, Any], tmp_path: Path) -> None:
    page = Page(write_report({**SUMMARY, "leakage": audit}, tmp_path).read_text(encoding="utf-8"))

    assert "leakage" in page.values("id")
    assert "None" not in page.text


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param(name, marks=[] if number % 3 == 0 else [pytest.mark.nightly])
        for number, name in enumerate(OPTIONAL)
    ],
)
def test_a_missing_section_is_left_out(missing: str, tmp_path: Path) -> None:
    path = write_report({name: value for name, value in SUMMARY.items() if name != missing}, tmp_path)

    page = Page(path.read_text(encoding="utf-8"))
    if missing in SECTIONS:
        assert missing not in page.values("id")
    assert set(page.values("href")) <= {f"#{name}" for name in page.values("id")}


@pytest.mark.parametrize("empty", [{}, None])
def test_the_counts_alone_make_a_page(empty: object, tmp_path: Path) -> None:
    write_report(SUMMARY, tmp_path)
    bare = {name: SUMMARY[name] for name in REQUIRED}

    path = write_report({**bare, "gain": empty, "codec": empty, "nll": empty, "examples": None}, tmp_path)

    page = Page(path.read_text(encoding="utf-8"))
    assert page.named("section") == []
    assert list((tmp_path / "plots").iterdir()) == [tmp_path / "plots" / "nll.json"]
    assert json.loads((tmp_path / "plots" / "nll.json").read_text()) == []


def test_missing_figures_inside_a_section_are_dashes(tmp_path: Path) -> None:
    summary = {**SUMMARY, "codec": {"token_recall": 0.99}, "retrieval": {"recall_at_1": None, "dense": {}}}

    page = Page(write_report(summary, tmp_path).read_text(encoding="utf-8"))

    assert "–" in page.text
    assert "Undefined" not in page.text
    assert "None" not in page.text


def test_nll_rows_carry_their_intervals(tmp_path: Path) -> None:
    summary = deepcopy(SUMMARY)
    del summary["conditions"]["raw_text"]

    write_report(summary, tmp_path)

    rows = {row["condition"]: row for row in json.loads((tmp_path / "plots" / "nll.json").read_text())}
    assert set(rows) == set(SUMMARY["nll"])
    assert rows["none"] == {
        "condition": "none",
        "nll": 4.502,
        "low": pytest.approx(4.382),
        "high": pytest.approx(4.632),
    }
    assert rows["raw_text"] == {"condition": "raw_text", "nll": 0.652, "low": None, "high": None}


def test_wrong_tokens_are_marked_and_right_ones_are_not(tmp_path: Path) -> None:
    tokens = [["Return", True], [" the", True], [" loast", False], [" squares", True]]
    document = {"document": "numpy.linalg.lstsq", "tokens": tokens, "token_recall": 0.75}

    text = write_report({**SUMMARY, "reconstruction": [document]}, tmp_path).read_text(encoding="utf-8")

    assert '<pre class="text box">Return the<mark class="wrong"> loast</mark> squares</pre>' in text


def test_answers_are_marked_by_what_they_share_with_the_target() -> None:
    marked = agreement(" the least norm solution", " the least squares solution")

    assert marked == [(" the least", True), (" norm", False), (" solution", True)]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (share(0.99999), "99.99 %"),
        (share(1), "100.0 %"),
        (share(0.6284), "62.8 %"),
        (nats(-6.601), "−6.60"),
        (nats(-0.001), "0.00"),
        (count(3412877), "3,412,877"),
        (count(0.996), "0.996"),
        (size(1535), "1.5 KiB"),
        (size(1023), "1,023 B"),
        (milliseconds(0.831), "0.83 ms"),
        (seconds(59.96), "1 min 00 s"),
        (seconds(7384.0), "2 h 03 min"),
        (share(None), "–"),
        (count("many"), "–"),
        (nats(True), "–"),
        (interval([1.0, 2.5]), "1.00 to 2.50"),
        (interval([1.0]), "–"),
    ],
)
def test_figures_have_their_units_and_missing_ones_are_dashes(shown: str, expected: str) -> None:
    assert shown.replace("\N{NO-BREAK SPACE}", " ") == expected


@given(st.text(), st.text())
def test_marking_keeps_the_answer_as_it_is(answer: str, target: str) -> None:
    assert "".join(text for text, _ in agreement(answer, target)) == answer
    assert all(right for _, right in agreement(answer, answer))


@given(st.text(st.characters(), max_size=50))
def test_visible_text_has_no_hidden_character_and_is_utf8(text: str) -> None:
    shown = visible(text)

    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e]", shown)
    assert len(shown.encode()) >= len(text)


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_a_browser_shows_the_page_light_or_dark_without_scrolling_sideways(
    width: int, scheme: str, written: Path, tmp_path: Path
) -> None:
    check_laid_out(written, tmp_path, width, scheme)
