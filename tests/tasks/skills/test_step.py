"""The whole room against a real store: published once, equal in another store, and what is measured."""

from pathlib import Path

import pytest

from store import Element, Store
from store.errors import ElementNotFound
from tasks.errors import BadPayload
from tasks.skills import (
    Operation,
    SkillSet,
    SkillsParams,
    evaluate_skills,
    find_skill_set,
    load_skill_samples,
    open_program,
    publish_programs,
)
from tasks.skills.program import Division
from tests.tasks.skills.conftest import PARAMS, build


def test_a_set_is_published_once_and_found_by_its_parameters(store: Store, skills: SkillSet) -> None:
    tip = store.tip().sequence
    assert build(store) == skills == find_skill_set(store, PARAMS)
    assert store.tip().sequence == tip
    changed = PARAMS.model_copy(update={"division": Division.FLOOR})
    with pytest.raises(ElementNotFound, match="cellar skill build"):
        find_skill_set(store, changed)


def test_equal_inputs_give_equal_versions_in_another_store(tmp_path: Path, skills: SkillSet) -> None:
    assert build(Store.create(f"file:{tmp_path}/other")) == skills


def test_programs_of_both_conventions_are_versions_of_one_skill(tmp_path: Path) -> None:
    store = Store.create(f"file:{tmp_path}/store")
    truncating = publish_programs(store, SkillsParams())
    flooring = publish_programs(store, SkillsParams(division=Division.FLOOR))
    assert set(truncating) == set(flooring) == set(Operation)
    assert {ref.name for ref in truncating.values()} == {
        f"skill/{operation.value}" for operation in Operation
    }
    assert set(truncating.values()).isdisjoint(flooring.values())
    assert open_program(store, "divide") == open_program(store, "skill/divide")
    assert open_program(store, "divide")[1].division is Division.FLOOR
    with pytest.raises(ElementNotFound, match="no skill power"):
        open_program(store, "power")


def test_a_forged_program_in_a_store_is_refused(tmp_path: Path) -> None:
    store = Store.create(f"file:{tmp_path}/store")
    store.publish([Element("skill", "greet", b"print('hello')", media="text/plain")], message="forged")
    with pytest.raises(BadPayload, match="no skill program"):
        open_program(store, "greet")


def test_attached_slot_by_slot_a_result_is_written_whatever_it_is(store: Store, skills: SkillSet) -> None:
    """Sixty updates of a narrow core: following and stopping are learned, on ranges never trained on."""
    result = evaluate_skills(store, PARAMS, skills=skills)
    families = result.summary["families"]

    for range_ in ("train", "disjoint"):
        intervention = families["intervention"]["positional"][range_]
        assert intervention["differs"]["follows"]["value"] >= 0.99
        assert intervention["differs"]["stop"]["value"] >= 0.99
        assert intervention["equal"]["stays"]["value"] == intervention["equal"]["follows"]["value"]
        assert families["standalone"]["none"][range_]["learned"]["whole_output"]["value"] < 0.2
        assert result.summary["routing"][range_]["operands"]["value"] == 1.0
    positional, whole = (families["external-skill"][name]["disjoint"] for name in ("positional", "global"))
    assert whole["learned"]["whole_output"]["value"] < positional["learned"]["whole_output"]["value"]


def test_an_evaluation_is_recognised_and_its_samples_account_for_every_figure(
    store: Store, skills: SkillSet
) -> None:
    first, again = (evaluate_skills(store, PARAMS, skills=skills) for _ in range(2))
    assert again.reused
    assert again.summary == first.summary

    samples = load_skill_samples(store.read(first.samples_ref))

    assert len(samples) == 2 * 60 * 7
    chosen = [s for s in samples if (s.family, s.interface, s.range) == ("external-skill", "global", "train")]
    figures = first.summary["families"]["external-skill"]["global"]["train"]
    assert figures["n"] == len(chosen) == 60
    assert figures["learned"]["whole_output"]["value"] == sum(s.strict for s in chosen) / 60
    assert figures["declared"]["stop"]["value"] == sum(s.declared_stopped for s in chosen) / 60
    assert all(s.written == str(s.answer) for s in chosen if s.strict)
    changed = [s for s in samples if s.family == "intervention"]
    assert all(s.differs == (s.returned != s.answer) for s in changed)
    assert {s.substitute for s in changed} > {"unchanged", "near", "negated"}
