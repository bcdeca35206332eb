"""A head follows its source: what changed is built, what vanished is left out, and nothing else happens."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from flows.errors import UsageError
from flows.params import Params
from flows.plan import plan_update
from flows.provenance.corpora import recorded_corpora
from flows.settings import Settings
from flows.timing import remembered as times_remembered
from flows.update_memories import update_memories
from flows.updating.changes import changes
from flows.updating.partitions import moment
from flows.updating.scope import Scope
from store import Store
from store.diff import compare, entries_of
from store.errors import ClaimHeld, ElementNotFound
from store.transfer import copy_snapshot
from tasks.corpus import shard_of
from tasks.errors import BadCorpus
from tests.flows.notices.receiver import receiving

pytestmark = pytest.mark.usefixtures("prefect_server")

TINY = yaml.safe_load((Path(__file__).parents[1] / "e2e" / "tiny.yaml").read_text())
SHARDS = TINY["corpus"]["shards"]
TEXTS = {name: text[:300] for name, text in sorted(topics.items())[::2] if len(text) >= 300}
Texts = dict[str, str]


@dataclass(frozen=True)
class Place:
    """A source that can be written, and a store whose head follows it."""

    folder: Path

    @property
    def settings(self) -> Settings:
        return Settings(
            store=f"file:{self.folder / 'store'}", work_dir=self.folder / "work", threads=1, quiet=True
        )

    @property
    def store(self) -> Store:
        return Store.open(self.settings.store)

    def write(self, texts: Texts, partition: str | None = None) -> None:
        lines = (json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items())
        self.source(partition).write_text("".join(lines))

    def source(self, partition: str | None = None) -> Path:
        return self.folder / f"{partition or 'docs'}.jsonl"

    def params(self, *, partitioned: bool = False, **memory: Any) -> Params:
        corpus = {"reader": "jsonl", "path": str(self.source("{partition}" if partitioned else None))}
        tree = {**TINY, "corpus": {**corpus, "shards": SHARDS}, "memory": {**TINY["memory"], **memory}}
        return Params.model_validate(tree)

    def update(self, params: Params | None = None, head: str = "docs", **options: Any) -> dict[str, Any]:
        return update_memories(params or self.params(), self.settings, head, **options)

    def diff(self, before: str, after: str) -> dict[str, set[str]]:
        """Names of the memories that differ, by kind of change."""
        found: dict[str, set[str]] = {"added": set(), "removed": set(), "replaced": set()}
        one, two = self.store.snapshot(before), self.store.snapshot(after)
        for change in compare(entries_of(one), entries_of(two)):
            if change.name.startswith("memory/"):
                found[change.what].add(change.name.removeprefix("memory/"))
        return found


def is_remembered(name: str) -> bool:
    return shard_of(name, SHARDS) % 2 == 1


def some(count: int, *, remembered: bool = True, start: str = "") -> list[str]:
    """Names of texts that workers remember, or that train the codec."""
    return [name for name in TEXTS if is_remembered(start + name) is remembered][:count]


def name_like(stem: str) -> str:
    """A new name that belongs to a worker shard."""
    return next(name for name in (f"{stem}{n}" for n in range(100)) if is_remembered(name))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, prefect_server: str) -> Place:
    """A head that was built from nothing; tests work on copies."""
    place = Place(tmp_path_factory.mktemp("built"))
    Store.create(place.settings.store)
    place.write(TEXTS)
    made = place.update()
    assert made["previous"] is None
    assert made["added"] == made["worked"] == sum(map(is_remembered, TEXTS))
    return place


@pytest.fixture
def place(built: Place, tmp_path: Path) -> Place:
    shutil.copytree(built.folder, tmp_path / "copy")
    return Place(tmp_path / "copy")


@pytest.fixture
def empty(built: Place, tmp_path: Path) -> Callable[[str], Place]:
    """Makes places whose head holds the frozen tokenizer, codec and reranker and no memory at all."""

    def make(name: str) -> Place:
        made = Place(tmp_path / name)
        made.folder.mkdir()
        store = Store.create(made.settings.store)
        snapshot = built.store.snapshot("head:docs")
        frozen = [snapshot.one(kind).ref for kind in ("tokenizer", "codec", "reranker")]
        pinned = built.store.pin(frozen, message="What is frozen")
        copy_snapshot(built.store, pinned, store)
        store.move_head("docs", pinned.id, expect=None)
        return made

    return make


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """Messages about runs, as a receiver gets them."""
    with receiving() as receiver:
        monkeypatch.setenv("CELLAR_NOTIFY_URL", receiver.url)
        yield receiver.messages


def test_an_update_builds_what_changed_and_retires_what_vanished(place: Place) -> None:
    edited, gone, *_ = some(2)
    added = name_like("new")
    texts = {**TEXTS, edited: "Edited. " + TEXTS[edited], added: "Entirely new. " * 20}
    del texts[gone]
    place.write(texts)

    made = place.update()

    changed = {"added": [added], "replaced": [edited], "retired": [gone]}
    assert made["names"] == changed
    assert made["worked"] == 2
    assert made["kept"] == sum(map(is_remembered, TEXTS)) - 2
    assert place.store.head("docs") == made["snapshot"] != made["previous"]
    assert place.diff(made["previous"], made["snapshot"]) == {
        "added": {added},
        "replaced": {edited},
        "removed": {gone},
    }


def test_documents_that_cannot_be_read_are_named_now_and_in_later_runs(place: Place) -> None:
    [emptied, *_] = some(1)
    place.write({**TEXTS, emptied: ""})
    with place.source().open("ab") as file:
        file.write(b'{"id": "latin", "text": "caf\xe9"}\n')

    made, again = place.update(), place.update()

    assert made["names"]["retired"] == [emptied]
    assert made["skipped"] == again["skipped"]
    assert made["skipped"]["count"] == 2
    assert made["skipped"]["reasons"] == {"empty": 1, "not UTF-8": 1}
    assert {"document": emptied, "reason": "empty"} in made["skipped"]["documents"]


def test_a_plan_knows_the_seconds_that_updates_took(place: Place) -> None:
    changed = {name: f"Edited. {TEXTS[name]}" for name in some(2)}
    place.write({**TEXTS, **changed})
    params = place.params()
    scope = Scope.of(params, at=moment(None))

    def planned() -> dict[str, float | None]:
        steps = plan_update(place.store, params, place.settings, "docs", scope)
        return {step.name: step.seconds for step in steps if step.runs}

    first = planned()
    documents = sum(map(is_remembered, TEXTS))
    [whole] = times_remembered(place.settings.work_dir)["memory"]
    assert whole.documents == documents
    assert first["memory"] == pytest.approx(whole.seconds * 2 / documents)
    assert list(first) == ["corpus", "memory", "indexes", "snapshot"]
    assert None not in first.values()

    place.update()
    place.write({**TEXTS, **{name: f"Edited again. {TEXTS[name]}" for name in some(2)}})
    spent = times_remembered(place.settings.work_dir)
    second = planned()
    assert [run.documents for run in spent["memory"]] == [documents, 2]
    assert second["memory"] == pytest.approx(spent["memory"][1].seconds)
    assert second["indexes"] == spent["index-update"][0].seconds


def test_a_source_that_did_not_change_moves_and_commits_nothing(place: Place) -> None:
    tip = place.store.tip()
    made = place.update()
    assert (made["moved"], made["worked"], made["added"] + made["replaced"] + made["retired"]) == (
        False,
        0,
        0,
    )
    assert made["snapshot"] == made["previous"]
    assert place.store.tip() == tip


def test_a_change_of_what_only_trains_the_codec_changes_no_memory(place: Place) -> None:
    [trained] = some(1, remembered=False)
    place.write({**TEXTS, trained: "Edited. " + TEXTS[trained]})
    made = place.update()
    assert (made["moved"], made["worked"]) == (False, 0)


def test_a_rejected_document_is_reported_again_and_neither_computed_nor_told_of_again(
    place: Place, told: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLAR_NOTIFY_REJECTED_SHARE", "0")
    odd = name_like("odd")
    noise = random.Random(3)
    hard = "".join(chr(noise.randint(0x4E00, 0x9FFF)) for _ in range(200))
    place.write({**TEXTS, odd: hard})
    first = place.update()
    assert [entry["document"] for entry in first["rejected"]] == [odd]
    assert (first["worked"], first["moved"]) == (1, False)
    [message] = told
    assert message["reason"].startswith("1 of ")

    again = place.update()
    assert (again["worked"], again["rejected"]) == (0, first["rejected"])
    assert told == [message]

    # Its shard is another one now, so that it is recognised by itself.
    edited = next(name for name in some(99) if shard_of(name, SHARDS) == shard_of(odd, SHARDS))
    place.write({**TEXTS, odd: hard, edited: "Edited. " + TEXTS[edited]})
    third = place.update()
    assert (third["worked"], third["names"]["replaced"]) == (1, [edited])
    assert third["rejected"] == first["rejected"]


def test_parameters_of_what_is_frozen_are_said_to_have_no_effect(place: Place) -> None:
    params = place.params()
    other = params.model_copy(update={"codec": params.codec.model_copy(update={"steps": 61})})
    made = place.update(other)
    assert not made["moved"]
    [notice] = made["notices"]
    assert "codec.steps" in notice
    assert "--retrain" in notice


def test_retraining_builds_every_memory_with_a_new_codec(place: Place) -> None:
    params = place.params()
    other = params.model_copy(update={"codec": params.codec.model_copy(update={"steps": 40})})
    made = place.update(other, retrain=True)
    before, after = (place.store.snapshot(made[name]) for name in ("previous", "snapshot"))
    assert before.one("codec").version != after.one("codec").version
    assert made["worked"] == made["documents"]
    assert made["notices"] == []


def test_the_snapshot_says_which_corpora_it_was_made_from(place: Place) -> None:
    [report] = recorded_corpora(place.store, str(place.store.head("docs")))
    assert report.name == "corpus/docs/report"
    assert place.store.catalog().get(report.version) is not None


def test_a_source_of_another_name_would_retire_everything_and_is_refused(place: Place) -> None:
    params = place.params()
    other = params.model_copy(update={"corpus": params.corpus.model_copy(update={"name": "other"})})
    with pytest.raises(UsageError, match="was made from docs and not from other"):
        place.update(other)


def test_only_the_given_shards_are_updated(place: Place) -> None:
    by_shard = {shard_of(name, SHARDS): name for name in some(99)}
    place.write({**TEXTS, **{name: "Edited. " + TEXTS[name] for name in by_shard.values()}})
    made = place.update(shards="3")
    assert made["names"] == {"added": [], "replaced": [by_shard[3]], "retired": []}
    rest = place.update()
    assert rest["names"]["replaced"] == [by_shard[1]]


def test_skills_in_the_set_of_a_head_stay(place: Place) -> None:
    from store import Element

    store = place.store
    before = store.snapshot("head:docs")
    [skill] = store.publish([Element("skill", "greet", b"hello", media="text/plain")], message="A skill")
    pinned = store.pin([*(row.ref for row in before.rows()), skill], message="With a skill")
    store.move_head("docs", pinned.id, expect=before.id)
    place.write({**TEXTS, name_like("new"): "Entirely new. " * 20})
    made = place.update()
    assert store.snapshot(made["snapshot"]).get("skill/greet").ref == skill


def test_an_update_from_nothing_with_the_same_codec_gives_the_same_snapshot(
    place: Place, empty: Callable[[str], Place]
) -> None:
    edited, gone, *_ = some(2)
    texts = {name: text for name, text in TEXTS.items() if name != gone} | {edited: "Edited. " * 30}
    place.write(texts)
    other = empty("other")
    other.write(texts)
    assert place.update()["snapshot"] == other.update()["snapshot"]


class TestPartitions:
    """A source that comes in files, one a day."""

    DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")

    @pytest.fixture
    def days(self, empty: Callable[[str], Place]) -> Place:
        place = empty("days")
        names = list(TEXTS)
        for number, day in enumerate(self.DAYS):
            place.write({name: TEXTS[name] for name in names[8 * number : 8 * number + 8]}, day)
        return place

    def update(self, days: Place, *partitions: str, **options: Any) -> dict[str, Any]:
        return days.update(days.params(partitioned=True), partitions=list(partitions), **options)

    def test_a_range_is_filled_with_one_pin_and_its_order_does_not_matter(
        self, days: Place, empty: Callable[[str], Place]
    ) -> None:
        made = self.update(days, "2026-11-01..2026-11-03")
        assert made["added"] == made["worked"] > 0
        assert sorted(made["corpora"]) == [f"docs.{day}" for day in self.DAYS]
        assert sum(commit.action == "pin" for commit in days.store.log()) == 2

        other = empty("other")
        for day in self.DAYS:
            shutil.copy(days.source(day), other.source(day))
        for day in reversed(self.DAYS):
            last = self.update(other, day)
        assert last["snapshot"] == made["snapshot"]
        reports = recorded_corpora(other.store, last["snapshot"])
        assert [ref.name for ref in reports] == [f"corpus/docs.{day}/report" for day in self.DAYS]

    def test_one_day_is_replaced_and_the_others_stay(self, days: Place, told: list[dict[str, Any]]) -> None:
        first = self.update(days, *self.DAYS)
        day = self.DAYS[1]
        names = {name for name in TEXTS if is_remembered(f"{day}/{name}")}
        days.write({name: TEXTS[name] + " And more." for name in list(TEXTS)[8:16]}, day)
        made = self.update(days, day)
        changed = {f"{day}/{name}" for name in list(TEXTS)[8:16] if name in names}
        assert set(made["names"]["replaced"]) == changed
        assert made["kept"] == first["added"] - len(changed)

        told.clear()
        gone = days.update(days.params(partitioned=True), drop_partitions=[day])
        assert told == []
        assert set(gone["names"]["retired"]) == changed
        assert [ref.name for ref in recorded_corpora(days.store, gone["snapshot"])] == [
            f"corpus/docs.{other}/report" for other in self.DAYS if other != day
        ]

    def test_a_day_without_a_file_is_said_before_any_work(self, days: Place) -> None:
        tip = days.store.tip()
        with pytest.raises(BadCorpus, match=r"2026-11-04\.jsonl does not exist.*--skip-missing"):
            self.update(days, "2026-11-03..2026-11-04")
        assert days.store.tip() == tip
        made = self.update(days, "2026-11-03..2026-11-04", skip_missing=True)
        assert made["missing"] == ["2026-11-04"]
        assert made["added"] > 0

    def test_days_relative_to_a_moment_are_those_of_its_zone(self, days: Place) -> None:
        made = self.update(days, "yesterday", at="2026-11-03T00:30:00+01:00")
        assert list(made["corpora"]) == ["docs.2026-11-02"]

    def test_what_does_not_fit_is_refused(self, days: Place, place: Place) -> None:
        with pytest.raises(UsageError, match="say which with --partition"):
            days.update(days.params(partitioned=True))
        with pytest.raises(UsageError, match=r"no \{partition\}"):
            days.update(partitions=["2026-11-01"])
        place.write({"a": TEXTS[some(1)[0]]}, "2026-11-01")
        with pytest.raises(UsageError, match="made from docs and not from partitions of docs"):
            self.update(place, "2026-11-01")
        self.update(days, "2026-11-01")
        with pytest.raises(ElementNotFound, match="no partition 2026-11-02 to drop"):
            days.update(days.params(partitioned=True), drop_partitions=["2026-11-02"])


class TestOverlap:
    def test_a_run_on_a_claimed_head_is_refused(self, place: Place) -> None:
        with place.store.claim("docs", owner="ada@host"), pytest.raises(ClaimHeld, match=r"\(ada@host\)"):
            place.update()

    def test_a_run_that_waits_works_after_the_other_one(self, place: Place) -> None:
        import threading

        place.write({**TEXTS, name_like("new"): "Entirely new. " * 20})
        claim = place.store.claim("docs", owner="ada@host")
        claim.take()
        with claim:
            released = threading.Timer(0.3, claim.__exit__, (None, None, None))
            released.start()
            made = place.update(wait_s=60)
            released.join()
        assert made["added"] == 1

    def test_a_head_that_somebody_else_moved_meanwhile_is_left_to_them(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The claim may be lost; the compare-and-swap of the head still decides."""
        from store.errors import HeadMoved

        store = place.store
        before = str(store.head("docs"))
        other = store.pin([store.snapshot(before).one("tokenizer").ref], message="Another set").id
        place.write({**TEXTS, name_like("new"): "Entirely new. " * 20})
        import flows.update_memories as module

        def moved_meanwhile(*sides: Any) -> Any:
            store.move_head("docs", other, expect=before)
            return changes(*sides)

        monkeypatch.setattr(module, "changes", moved_meanwhile)
        with pytest.raises(HeadMoved):
            place.update()
        assert store.head("docs") == other


@pytest.mark.parametrize("examples", [1, pytest.param(100, marks=pytest.mark.nightly)], ids=["one", "many"])
def test_any_sequence_of_changes_ends_where_a_build_from_nothing_ends(
    examples: int, built: Place, empty: Callable[[str], Place], tmp_path: Path
) -> None:
    names = st.sampled_from([*some(6), name_like("x"), name_like("y")])
    contents = st.one_of(st.none(), st.sampled_from(list(TEXTS.values())[:6]))
    number = iter(range(10**6))

    @settings(max_examples=examples, database=None, phases=[Phase.generate])  # shrinking takes minutes
    @given(steps=st.lists(st.dictionaries(names, contents, min_size=1, max_size=4), min_size=1, max_size=3))
    def check(steps: list[dict[str, str | None]]) -> None:
        run = next(number)
        place = Place(tmp_path / f"place-{run}")
        shutil.copytree(built.folder, place.folder)
        texts: Texts = dict(TEXTS)
        for step in steps:
            before = set(remembered(texts).items())
            for name, content in step.items():
                texts.pop(name, None)
                if content is not None:
                    texts[name] = f"{content} {name}"  # equal texts are one document
            place.write(texts)
            made = place.update()
            after = set(remembered(texts).items())
            difference = place.diff(made["previous"], made["snapshot"])
            gone, new = dict(before - after), dict(after - before)
            assert difference["added"] == new.keys() - gone.keys()
            assert difference["removed"] == gone.keys() - new.keys()
            assert difference["replaced"] == gone.keys() & new.keys()
        fresh = empty(f"fresh-{run}")
        fresh.write(texts)
        assert fresh.update()["snapshot"] == made["snapshot"]

    check()


def remembered(texts: Texts) -> Texts:
    return {name: text for name, text in texts.items() if is_remembered(name)}
