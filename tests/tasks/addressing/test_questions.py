"""Questions find their paragraphs by what memories decode to, apart from all coordinates."""

import json
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import pytest

from store import canonical_json
from tasks.addressing import QuestionParams, evaluate_questions, load_question_samples
from tasks.errors import BadPayload
from tasks.evaluation import PublishedEvaluation
from tasks.memory import MemoryParams
from tasks.retrieval import RetrievalParams
from tests.tasks.addressing.test_step import Place, one_thread, place

__all__ = ["one_thread", "place"]

PARAMS = QuestionParams(scrambled=60, resamples=200)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty paragraphs of three articles; each is asked for by some of its own rarer words, in any order."""
    draw = np.random.default_rng(0)
    chosen = sorted(name for name in topics if 800 <= len(topics[name]) <= 6000)[:30]
    paragraphs: list[list[dict[str, Any]]] = [[], [], []]
    for row, name in enumerate(chosen):
        text = " ".join(topics[name].split())[:700]
        long = sorted({word for word in text.split() if len(word) > 6})
        question = f"What about {' '.join(draw.permutation(long)[:5])}?"
        paragraphs[row % 3].append({"context": text, "qas": [{"id": name, "question": question}]})
    path = tmp_path_factory.mktemp("questions") / "topics.json"
    articles = [{"title": f"part {part}", "paragraphs": some} for part, some in enumerate(paragraphs)]
    path.write_text(json.dumps({"data": articles}))
    return path


def _evaluate(place: Place, path: Path) -> PublishedEvaluation:
    return evaluate_questions(
        place.store, PARAMS, MemoryParams(), RetrievalParams(), snapshot=place.snapshot, path=path
    )


def test_paragraphs_are_found_and_what_was_found_is_published_once(
    place: Place, asked: Path, tmp_path: Path
) -> None:
    result = _evaluate(place, asked)
    summary = result.summary
    assert place.store.read(result.summary_ref) == canonical_json(summary)
    assert (summary["protocol"], summary["questions"], summary["articles"]) == ("question-only", 30, 3)
    assert summary["token_recall"] >= 0.95
    for searcher in ("hybrid", "bm25"):
        figures = summary["figures"][searcher]
        assert figures["recall_at_5"]["value"] >= figures["recall_at_1"]["value"] >= 0.8
    assert set(summary["weights"]) == {"words", "characters", "charts", "dense"}
    moved = tmp_path / "moved.json"
    moved.write_text(json.dumps(json.loads(asked.read_text()), indent=2))
    again = _evaluate(place, moved)  # the content is the identity, not the file
    assert again.reused
    assert again.samples_ref == result.samples_ref


def test_figures_follow_from_the_samples(place: Place, asked: Path) -> None:
    result = _evaluate(place, asked)
    samples = load_question_samples(place.store.read(result.samples_ref))
    assert {sample.protocol for sample in samples} == {"question-only"}
    recalls = {}
    for searcher in ("hybrid", "bm25"):
        ranks = np.array([sample.rank for sample in samples if sample.searcher == searcher])
        assert len(ranks) == 30
        figures = result.summary["figures"][searcher]
        assert figures["recall_at_1"]["value"] == pytest.approx((ranks == 1).mean())
        assert figures["reciprocal_rank"]["value"] == pytest.approx((1 / ranks).mean())
        recalls[searcher] = figures["recall_at_1"]["value"]
    assert result.summary["margin"]["recall_at_1"]["value"] == pytest.approx(
        recalls["hybrid"] - recalls["bm25"]
    )
    assert all((sample.rank == 1) == (sample.best == sample.paragraph) for sample in samples)


def test_a_payload_that_is_no_table_of_samples_is_refused() -> None:
    with pytest.raises(BadPayload, match="a table of question samples"):
        load_question_samples(b"PAR1")
