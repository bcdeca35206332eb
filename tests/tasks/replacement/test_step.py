"""One memory in another version: exactly its results change, and answers follow what it says."""

import json

import pytest

from store.errors import ElementNotFound
from tasks.codec import Codec
from tasks.corpus import Tokenizer
from tasks.evaluation import Condition, PublishedEvaluation, load_samples
from tasks.memory import MemoryParams
from tasks.replacement import ReplacementParams, evaluate_replacement
from tests.tasks.evaluation.conftest import PARAMS, codec, core, texts, tokenizer  # noqa: F401 - fixtures
from tests.tasks.evaluation.test_step import RETRIEVAL, Place, furnish
from tests.tasks.threads import one_thread  # noqa: F401 - of the whole room

# In the format of the furnished memories: another one would change the cells of every block.
MEMORY = MemoryParams(dtype="bfloat16", max_steps=0, tile_blocks=8)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer, codec: Codec) -> Place:  # noqa: F811
    return furnish(f"file:{tmp_path_factory.mktemp('replacement')}/store", tokenizer, codec)


def run(place: Place, params: ReplacementParams) -> PublishedEvaluation:
    return evaluate_replacement(
        place.store,
        params,
        PARAMS,
        MEMORY,
        RETRIEVAL,
        snapshot=place.snapshot,
        core=place.core,
        corpus=place.corpus,
    )


@pytest.fixture(scope="module")
def replaced(place: Place) -> PublishedEvaluation:
    return run(place, ReplacementParams())


def test_exactly_the_results_that_read_what_is_different_change(
    place: Place, replaced: PublishedEvaluation
) -> None:
    summary = replaced.summary
    assert summary["exact"]
    assert 0 < summary["changed"] == summary["expected_to_change"] <= summary["reading_the_element"]
    assert summary["elsewhere"]["changed"] == 0
    assert 0 < summary["re_evaluated_tasks"] < summary["tasks"]
    assert summary["by_condition"]["none"]["changed"] == 0
    assert 0 < summary["blocks"]["different"] < summary["blocks"]["all"]
    before, after = (
        place.store.snapshot(summary["snapshots"][side]).rows("memory") for side in ("before", "after")
    )
    others = {row.ref for row in before} ^ {row.ref for row in after}
    assert {ref.name for ref in others} == {summary["replaced"]}


def test_answers_follow_the_new_version(replaced: PublishedEvaluation) -> None:
    for condition in (Condition.RIGHT, Condition.RETRIEVED):
        followed = replaced.summary["follows"][condition]
        assert followed["old_before"] == followed["new_after"] == followed["tasks"] > 0
        assert followed["old_after"] == 0


def test_what_the_new_version_says_is_kept_beside_what_was_written(
    place: Place, replaced: PublishedEvaluation
) -> None:
    said = replaced.summary["edited"]
    after = {(s.condition, s.task): s for s in load_samples(place.store.read(replaced.samples_ref))}
    assert len(said) == replaced.summary["follows"]["right"]["tasks"]
    for task, text in said.items():
        assert after["right", task].written == text != after["right", task].target


def test_both_sides_are_kept_and_the_same_replacement_is_found(
    place: Place, replaced: PublishedEvaluation
) -> None:
    store = place.store
    before = store.catalog().versions(f"{replaced.summary_ref.name}/before")[-1]
    old, new = load_samples(store.read(before)), load_samples(store.read(replaced.samples_ref))
    assert [(s.condition, s.task, s.target) for s in old] == [(s.condition, s.task, s.target) for s in new]
    assert sum(one != other for one, other in zip(old, new, strict=True)) >= replaced.summary["changed"]
    commits = len(list(store.log()))
    again = run(place, ReplacementParams())
    assert (again.reused, again.summary_ref) == (True, replaced.summary_ref)
    assert len(list(store.log())) == commits
    assert json.loads(store.read(replaced.summary_ref)) == replaced.summary


def test_a_version_of_the_store_can_be_named_and_the_same_one_changes_nothing(
    place: Place, replaced: PublishedEvaluation
) -> None:
    name, versions = replaced.summary["replaced"], replaced.summary["versions"]
    named = run(place, ReplacementParams(name="named", element=f"{name}@{versions['after']}"))
    assert named.summary["versions"] == versions
    assert named.summary["follows"] is None is named.summary["edited"]
    assert named.summary["exact"]
    # Raw text is the corpus', which says what it said.
    raw = Condition.RAW_TEXT
    assert named.summary["by_condition"][raw]["changed"] == 0
    assert named.summary["by_condition"]["right"] == replaced.summary["by_condition"]["right"]
    same = run(place, ReplacementParams(name="same", element=f"{name}@{versions['before']}"))
    assert (same.summary["changed"], same.summary["exact"]) == (0, True)
    assert same.summary["snapshots"]["after"] == same.summary["snapshots"]["before"]


def test_what_is_not_there_is_said(place: Place) -> None:
    with pytest.raises(ElementNotFound):
        run(place, ReplacementParams(element="memory/nobody"))
    held = place.snapshot.rows("memory")[0].name
    with pytest.raises(ElementNotFound, match="holds no"):
        run(place, ReplacementParams(element=f"{held}@{'0' * 64}"))
