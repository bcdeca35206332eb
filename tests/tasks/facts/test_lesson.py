"""Facts are made up once for a seed, bind each entity to one value, and are taught in equal budgets."""

import pydoc_data.topics
import re
from collections import Counter

import pytest

from tasks.errors import TooLittleText
from tasks.facts import ASKED, STATEMENT, TAUGHT, FactsParams, lesson_of, made_up_facts

PARAMS = FactsParams(relations=3, facts_each=4, untaught=2, passes=2)


def encode(text: str) -> list[int]:
    return list(text.encode())


def test_equal_parameters_make_equal_facts_and_another_seed_others() -> None:
    facts = made_up_facts(PARAMS)
    assert facts == made_up_facts(PARAMS.model_copy(update={"name": "other"}))
    others = made_up_facts(PARAMS.model_copy(update={"seed": 1}))
    assert not {fact.entity for fact in facts} & {fact.entity for fact in others}


def test_an_entity_has_one_value_and_wrong_answers_are_of_its_relation() -> None:
    facts = made_up_facts(PARAMS)
    assert len({fact.entity for fact in facts}) == len({fact.value for fact in facts}) == len(facts) == 12
    for fact in facts:
        rest = {other.value for other in facts if other.attribute == fact.attribute} - {fact.value}
        assert set(fact.taught) == rest
        assert not set(fact.untaught) & {other.value for other in facts}
        assert len(fact.untaught) == 2


def test_no_entity_is_a_word_of_a_text_that_there_is() -> None:
    known = set(re.findall(r"\w+", " ".join(pydoc_data.topics.topics.values())))
    assert not known & {fact.entity for fact in made_up_facts(FactsParams(relations=8, facts_each=10))}


def test_more_facts_than_there_are_values_are_refused() -> None:
    with pytest.raises(TooLittleText, match=r"lower facts\.facts_each"):
        made_up_facts(FactsParams(facts_each=100))


def test_a_varied_lesson_says_every_fact_in_a_dozen_framings() -> None:
    facts = made_up_facts(PARAMS)
    lesson = lesson_of("varied", facts, encode, PARAMS)
    text = bytes(lesson.tokens_T.tolist()).decode()
    assert lesson.mentions == len(TAUGHT) * PARAMS.passes == 24
    for fact in facts:
        assert all(text.count(framing.say(fact) + "\n") >= 2 for framing in TAUGHT)
        assert not any(framing.ask(fact) in text for framing in ASKED)


def test_a_repeated_lesson_says_one_framing_in_as_many_tokens() -> None:
    facts = made_up_facts(PARAMS)
    varied, repeated = (lesson_of(lesson, facts, encode, PARAMS) for lesson in ("varied", "repeated"))
    assert len(repeated.tokens_T) == len(varied.tokens_T)
    said = bytes(repeated.tokens_T.tolist()).decode().split("\n")[:-1]
    counts = Counter(said)
    assert set(counts) == {STATEMENT.say(fact) for fact in facts}
    assert max(counts.values()) - min(counts.values()) <= 1
    assert said[:12] != said[12:24]
    once = lesson_of("once", facts, encode, PARAMS)
    assert Counter(bytes(once.tokens_T.tolist()).decode().split("\n")[:-1]) == Counter(set(counts))
    assert once.mentions == 1


def test_what_asks_for_a_value_is_the_sentence_before_it() -> None:
    fact = made_up_facts(PARAMS)[0]
    for framing in (*ASKED, STATEMENT):
        assert framing.say(fact).startswith(f"{framing.ask(fact)} {fact.value}")
        assert fact.value not in framing.ask(fact)
