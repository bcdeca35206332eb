"""A head moves to a snapshot only if everything holds, from where it was judged."""

import json
from pathlib import Path

import pytest

from flows.promoting.evaluations import evaluation_of
from flows.promoting.promotion import Evaluate, Promotion, promote
from flows.promoting.requirements import parse_requirement
from store import Element, Store
from store.errors import HeadMoved, IntegrityError
from tasks.evaluation.params import EvaluationParams

NAME = EvaluationParams().name


class Place:
    """A store with snapshots of one codec, whose evaluations are what the test says."""

    def __init__(self, folder: Path) -> None:
        self.store = Store.create(str(folder))
        [self.codec] = self.store.publish([Element("codec", "c", b"", media="text/plain")], message="codec")
        core = Element("core", "a", b"", media="text/plain", requires=(self.codec.version,))
        [self.core] = self.store.publish([core], message="core")
        self.asked: list[tuple[str, EvaluationParams | None, str | None]] = []
        self.nll: dict[str, float] = {}
        self.warnings: list[str] = []

    def snapshot(self, name: str, nll: float) -> str:
        memory = Element("memory", name, name.encode(), media="text/plain", requires=(self.codec.version,))
        refs = self.store.publish([memory], message="memory")
        identity = self.store.pin([*refs, self.codec], message="pin").id
        self.nll[identity] = nll
        return identity

    def evaluate(self, snapshot: str, settings: EvaluationParams | None, core: str | None) -> str:
        self.asked.append((snapshot, settings, core))
        chosen = settings or EvaluationParams()
        summary = {
            "settings": chosen.model_dump(mode="json"),
            "tasks": 3,
            "nll": {"retrieved": self.nll[snapshot]},
        }
        element = Element(
            "evaluation",
            chosen.name,
            json.dumps(summary).encode(),
            media="application/json",
            requires=(self.core.version,),
            provenance={"snapshot": snapshot, "core": str(self.core)},
            facts={"peak_rss_bytes": 7},
        )
        return str(self.store.publish([element], message="evaluation")[0])

    def record(self, snapshot: str, text: str, name: str = NAME, **provenance: object) -> str:
        """An evaluation as somebody else may have published it."""
        element = Element(
            "evaluation",
            name,
            text.encode(),
            media="application/json",
            provenance={"snapshot": snapshot, "core": str(self.core), **provenance},
        )
        return str(self.store.publish([element], message="foreign")[0])

    def promote(
        self,
        snapshot: str,
        *requirements: str,
        store: Store | None = None,
        settings: EvaluationParams | None = None,
        evaluate: Evaluate | None = None,
    ) -> Promotion:
        return promote(
            store or self.store,
            snapshot,
            to="prod",
            requirements=[parse_requirement(text, "prod") for text in requirements],
            evaluate=evaluate or self.evaluate,
            name=NAME,
            settings=settings,
            warn=lambda sentence: self.warnings.append(str(sentence)),
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "store")


def test_a_head_moves_if_all_requirements_hold_and_remembers_why(place: Place) -> None:
    one = place.snapshot("one", 1.5)
    store = Store.open(place.store.url, run={"user": "ada", "host": "lab"})

    result = place.promote(one, "nll.retrieved<2", "costs.peak_rss_bytes<8", store=store)

    assert (result.moved, result.before, place.store.head("prod")) == (True, None, one)
    note = place.store.head_log("prod")[-1].note
    assert (note.action, note.by) == ("promote", "ada@lab")
    assert note.why == "nll.retrieved<2 (1.5); costs.peak_rss_bytes<8 (7)"
    assert note.evaluation == str(result.evaluation.row.ref)


def test_one_requirement_that_does_not_hold_keeps_the_head_where_it_is(place: Place) -> None:
    one, two = place.snapshot("one", 1.5), place.snapshot("two", 2.5)
    place.promote(one, "nll.retrieved<2")
    before = place.store.head_log("prod")

    result = place.promote(two, "tasks==3", "nll.retrieved<2")

    assert [verdict.holds for verdict in result.verdicts] == [True, False]
    assert not result.moved
    assert place.store.head_log("prod") == before


def test_an_evaluation_that_is_there_is_read_and_not_made_again(place: Place) -> None:
    one = place.snapshot("one", 1.5)
    place.promote(one, "nll.retrieved<1")
    commits = place.store.tip().sequence

    place.promote(one, "nll.retrieved<2")
    again = place.promote(one, "nll.retrieved<2")

    assert (again.moved, again.holds, len(place.store.head_log("prod"))) == (False, True, 1)
    assert [snapshot for snapshot, _, _ in place.asked] == [one]
    assert place.store.tip().sequence == commits


def test_the_heads_snapshot_is_judged_by_the_same_settings_and_core(place: Place) -> None:
    one, two = place.snapshot("one", 1.5), place.snapshot("two", 1.6)
    place.promote(one, "nll.retrieved<2")
    fewer = EvaluationParams(prefix_tasks=5)
    place.evaluate(two, fewer, None)
    place.asked.clear()

    strict = place.promote(two, "nll.retrieved<=prod")
    lenient = place.promote(two, "nll.retrieved<=prod+0.2")

    assert place.asked == [(one, fewer, str(place.core))]
    assert (strict.moved, lenient.moved) == (False, True)
    assert strict.verdicts[0].bound == 1.5
    assert place.store.head("prod") == two


def test_a_first_promotion_cannot_be_compared_with_anything(place: Place) -> None:
    result = place.promote(place.snapshot("one", 1.5), "nll.retrieved<=prod+9")

    assert (result.verdicts[0].bound, result.moved, place.store.head("prod")) == (None, False, None)


def test_of_two_promotions_at_once_one_wins_and_the_other_is_told(place: Place) -> None:
    one, two, three = (place.snapshot(name, nll) for name, nll in (("1", 1.5), ("2", 1.4), ("3", 1.3)))
    place.promote(one, "nll.retrieved<2")

    def evaluate(snapshot: str, settings: EvaluationParams | None, core: str | None) -> str:
        """While the one is evaluated, the other is judged against the same head and moves it."""
        place.promote(three, "nll.retrieved<prod")
        return place.evaluate(snapshot, settings, core)

    with pytest.raises(HeadMoved, match=f"points to {three[:12]}, not to {one[:12]}"):
        promote(
            place.store,
            two,
            to="prod",
            requirements=[parse_requirement("nll.retrieved<prod", "prod")],
            evaluate=evaluate,
            name=NAME,
        )

    assert [position.snapshot for position in place.store.head_log("prod")] == [one, three]


def test_evaluations_of_other_snapshots_names_and_cores_are_not_mistaken(place: Place) -> None:
    one, two = place.snapshot("one", 1.5), place.snapshot("two", 1.6)
    place.evaluate(one, None, None)

    assert evaluation_of(place.store, two, NAME) is None
    assert evaluation_of(place.store, one, "other") is None
    assert evaluation_of(place.store, one, NAME, core="core/b") is None
    assert evaluation_of(place.store, one, NAME, settings=EvaluationParams(seed=1)) is None
    for core in (None, str(place.core)):
        found = evaluation_of(place.store, one, NAME, core=core)
        assert found is not None
        assert found.figures["nll"]["retrieved"] == 1.5


def test_only_an_evaluation_by_the_settings_that_were_asked_for_counts(place: Place) -> None:
    one = place.snapshot("one", 1.5)
    quick, asked = EvaluationParams(prefix_tasks=20), EvaluationParams(prefix_tasks=200, seed=2)
    place.evaluate(one, asked, None)
    place.evaluate(one, quick, None)
    place.asked.clear()

    newest = place.promote(one, "nll.retrieved<1")
    chosen = place.promote(one, "nll.retrieved<1", settings=asked)
    other = place.promote(one, "nll.retrieved<2", settings=EvaluationParams(seed=3))

    assert [one.evaluation.settings for one in (newest, chosen)] == [quick, asked]
    assert chosen.to_dict()["settings"]["prefix_tasks"] == 200
    assert (other.evaluation.settings.seed, other.moved) == (3, True)
    assert place.asked == [(one, EvaluationParams(seed=3), None)]


FOREIGN = [
    "{}",
    "[]",
    "null",
    "7",
    "no JSON",
    '"text"',
    "[" * 5000,
    '{"settings": null}',
    '{"settings": []}',
    '{"settings": {"a_setting_of_old": 3}, "tasks": 3}',
    '{"settings": {"seed": -1}}',
    f'{{"tasks": {"9" * 5000}}}',
]


@pytest.mark.parametrize("text", FOREIGN, ids=range(len(FOREIGN)))
def test_a_record_that_cannot_be_read_is_passed_over_with_a_warning(place: Place, text: str) -> None:
    one = place.snapshot("one", 1.5)
    place.evaluate(one, None, None)
    place.record(one, text)
    place.asked.clear()

    result = place.promote(one, "nll.retrieved<2")

    assert (result.moved, place.asked) == (True, [])
    [warning] = place.warnings
    assert warning.startswith("an evaluation is passed over: evaluation/attachment@")


@pytest.mark.parametrize("core", [None, 7, [], {"a": 1}, "core/a", "nonsense@" + "0" * 64])
def test_a_record_that_names_no_core_is_passed_over(place: Place, core: object) -> None:
    one = place.snapshot("one", 1.5)
    settings = json.dumps(EvaluationParams().model_dump(mode="json"))
    place.record(one, f'{{"settings": {settings}, "nll": {{"retrieved": 0}}, "tasks": 3}}', core=core)

    assert place.promote(one, "nll.retrieved<=1.5", "nll.retrieved>1").moved
    assert (len(place.warnings), [snapshot for snapshot, _, _ in place.asked]) == (1, [one])


def test_where_nothing_else_is_there_than_what_cannot_be_read_one_sentence_says_so(place: Place) -> None:
    one = place.snapshot("one", 1.5)

    with pytest.raises(IntegrityError, match=r"^evaluation/attachment@\w{64} stands for .* --set evaluation"):
        place.promote(one, "nll.retrieved<2", evaluate=lambda snapshot, *_: place.record(snapshot, "{}"))

    assert place.store.head("prod") is None
