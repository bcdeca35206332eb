"""Made-up facts written into shadows (ANNEAL): a dozen framings against one, and what a host then answers."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.facts.asking import FactSample, answer_nats, ask_facts
    from tasks.facts.framings import ASKED, STATEMENT, TAUGHT, Framing
    from tasks.facts.lesson import Taught, lesson_of
    from tasks.facts.params import FactsParams, Lesson
    from tasks.facts.recipes import asking_work, facts_recipe, find_lesson, lesson_name
    from tasks.facts.step import check_lessons, evaluate_facts, teach
    from tasks.facts.summary import summarise
    from tasks.facts.world import Fact, made_up_facts

__all__ = [
    "ASKED",
    "STATEMENT",
    "TAUGHT",
    "Fact",
    "FactSample",
    "FactsParams",
    "Framing",
    "Lesson",
    "Taught",
    "answer_nats",
    "ask_facts",
    "asking_work",
    "check_lessons",
    "evaluate_facts",
    "facts_recipe",
    "find_lesson",
    "lesson_name",
    "lesson_of",
    "made_up_facts",
    "summarise",
    "teach",
]

export_lazily(__name__)
