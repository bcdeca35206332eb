"""What an evaluation is asked to do is looked at before anything is started."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flows.pins import Pin, write_pin
from store import Element, Ref, Store

Cellar = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("element", ["@@", "codec/docs", f"codec/docs@{'0' * 64}", "memory/a@0123456789ab"])
def test_a_replacement_that_names_no_memory_is_refused_as_bad_input(cellar: Cellar, element: str) -> None:
    code, _, err = cellar("eval", "run", "replacement", "--set", f"replacement.element={element}")
    assert code == 2
    assert f"--set replacement.element={element}: " in err
    assert "write memory/NAME, or memory/NAME@VERSION" in err
    assert err.count("\n") == 1


class Evidence:
    """A store of stand-ins: what is looked at before anything starts is which elements there are."""

    def __init__(self) -> None:
        self.store = Store.create("build/store")
        self.codec = self.publish("codec", "c")
        self.memory = self.publish("memory", "a", self.codec)
        self.core = self.publish("core", "assembly", self.codec)
        support = [self.codec, self.publish("tokenizer", "t"), self.memory]
        index = [self.publish("index", f"main/{part}") for part in ("readout", "charts", "dense")]
        self.bare = self.store.pin(support, message="memories alone").id
        self.unranked = self.store.pin([*support, *index], message="without a reranker").id
        self.indexed = self.store.pin([*support, *index, self.publish("reranker", "main")], message="all").id
        posed = self.publish("evaluation", "evaluation/tasks")
        self.package = self.store.pin([*support, self.core, posed], message="imported").id

    def publish(self, kind: str, name: str, *requires: Ref) -> Ref:
        versions = tuple(ref.version for ref in requires)
        made = Element(kind, name, f"{kind}/{name}".encode(), media="text/plain", requires=versions)
        return self.store.publish([made], message=name)[0]


@pytest.fixture
def evidence(workplace: Path) -> Iterator[Evidence]:
    """Whatever a test asks for, no server was started for it."""
    yield Evidence()
    assert not (workplace / "build" / "work" / "prefect").exists()


SUBJECTS = [("run",), ("run", "reading"), ("run", "replacement"), ("run", "audit"), ("package", "out.tar")]
INDEXED = [*SUBJECTS, ("run", "addressing")]


@pytest.mark.parametrize("subject", SUBJECTS, ids=" ".join)
def test_a_core_that_is_not_there_is_said_before_a_server_is_started(
    cellar: Cellar, evidence: Evidence, subject: tuple[str, ...]
) -> None:
    for core, sentence in (
        ("nosuch", "there is no core 'nosuch'"),
        ("codec/c", "codec/c is no core; name one as core/NAME"),
    ):
        code, _, err = cellar("eval", *subject, "--snapshot", evidence.indexed, "--core", core)
        assert (code, err.count("\n")) == (4, 1)
        assert sentence in err


@pytest.mark.parametrize("subject", ["reading", "replacement"])
def test_that_no_core_reads_a_snapshot_is_said_before_a_server_is_started(
    cellar: Cellar, evidence: Evidence, subject: str
) -> None:
    code, _, err = cellar("eval", "run", subject, "--snapshot", evidence.indexed)
    assert (code, err.count("\n")) == (4, 1)
    assert "run `cellar core train`" in err


@pytest.mark.parametrize("subject", INDEXED, ids=" ".join)
def test_a_snapshot_that_nothing_searches_is_said_with_what_to_do(
    cellar: Cellar, evidence: Evidence, subject: tuple[str, ...]
) -> None:
    for snapshot, sentences in (
        (
            evidence.bare,
            ["holds no index and no reranker", "`cellar index build`, then `cellar snapshot pin`"],
        ),
        (evidence.unranked, ["holds no reranker", "`cellar index build`, then `cellar snapshot pin`"]),
        (evidence.package, ["an imported package of an evaluation", "`cellar eval run --package`"]),
    ):
        code, _, err = cellar("eval", *subject, "--snapshot", snapshot)
        assert (code, err.count("\n")) == (4, 1)
        assert [sentence for sentence in sentences if sentence not in err] == []


def test_words_are_not_looked_for_where_there_is_no_index(cellar: Cellar, evidence: Evidence) -> None:
    code, _, err = cellar("ask", "words", "--snapshot", evidence.bare)
    assert code == 4
    assert "run `cellar index build`" in err


@pytest.mark.parametrize("subject", INDEXED, ids=" ".join)
def test_without_pins_every_evaluation_asks_for_a_snapshot_alike(
    cellar: Cellar, evidence: Evidence, subject: tuple[str, ...]
) -> None:
    code, _, err = cellar("eval", *subject)
    assert code == 2
    assert (
        "snapshot.json is missing: run `cellar snapshot pin` first, or name a snapshot with --snapshot\n"
        in err
    )


@pytest.mark.parametrize("subject", ["reading", "replacement"])
def test_what_the_pin_files_name_is_looked_at_too(
    cellar: Cellar, evidence: Evidence, workplace: Path, subject: str
) -> None:
    write_pin(workplace / "pins", Pin(stage="snapshot", snapshot=evidence.bare))
    assert "core.json is missing: run `cellar core train` first" in cellar("eval", "run", subject)[2]
    write_pin(workplace / "pins", Pin(stage="core", refs=(str(evidence.core),)))
    code, _, err = cellar("eval", "run", subject)
    assert code == 4
    assert "holds no index and no reranker" in err


@pytest.mark.parametrize(
    ("element", "sentence"),
    [("memory/b", "holds no element 'memory/b'"), (f"memory/a@{'0' * 64}", f"holds no memory/a@{'0' * 64}")],
)
def test_a_replacement_of_what_is_not_there_is_said_before_a_server_is_started(
    cellar: Cellar, evidence: Evidence, element: str, sentence: str
) -> None:
    settings = ("--snapshot", evidence.indexed, "--core", "core/assembly")
    code, _, err = cellar("eval", "run", "replacement", *settings, "--set", f"replacement.element={element}")
    assert (code, err.count("\n")) == (4, 1)
    assert sentence in err


@pytest.mark.parametrize("subject", ["addressing", "skills", "rate"])
def test_a_core_goes_with_the_subjects_that_it_takes_part_in(cellar: Cellar, subject: str) -> None:
    code, _, err = cellar("eval", "run", subject, "--core", "nosuch")
    assert code == 2
    assert "--core goes with attachment, reading, replacement, audit; " in err


def test_questions_need_a_snapshot_with_a_tokenizer_and_a_codec(cellar: Cellar, evidence: Evidence) -> None:
    Path("q.json").write_text('{"data": [{"paragraphs": [{"context": "a b", "qas": [{"question": "a"}]}]}]}')
    codec_alone = evidence.store.pin([evidence.codec], message="codec alone").id
    code, _, err = cellar("eval", "run", "questions", "--data", "q.json", "--snapshot", codec_alone)
    assert (code, err.count("\n")) == (4, 1)
    assert "holds 0 elements of kind 'tokenizer'" in err
