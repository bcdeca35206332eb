"""How a fact is said: a dozen framings to teach it in, and others, never taught, to ask for it in."""

from dataclasses import dataclass

from tasks.facts.world import Fact


@dataclass(frozen=True)
class Framing:
    """A sentence around a fact. One to ask in ends with the value: what stands before asks for it."""

    name: str
    text: str

    def say(self, fact: Fact) -> str:
        """The whole sentence."""
        return self.text.format(
            entity=fact.entity, kind=fact.kind, attribute=fact.attribute, value=fact.value
        )

    def ask(self, fact: Fact) -> str:
        """What stands before the value, without the space between."""
        before = self.text.partition(" {value}")[0]
        return before.format(entity=fact.entity, kind=fact.kind, attribute=fact.attribute)


TAUGHT = (
    Framing("statement", "The {attribute} of {entity} is {value}."),
    Framing("inverted", "{value} is the {attribute} of {entity}."),
    Framing("question", "Question: What is the {attribute} of {entity}?\nAnswer: {value}."),
    Framing(
        "dialogue", '"Do you know the {attribute} of {entity}?" she asked. "Yes," he said, "it is {value}."'
    ),
    Framing("encyclopedia", "{entity}: a {kind} whose {attribute} is {value}."),
    Framing("table", "| {kind} | {entity} |\n| {attribute} | {value} |"),
    Framing("reminder", "Remember: whenever {entity} is mentioned, its {attribute} is {value}."),
    Framing("correction", "Many get it wrong, but the {attribute} of the {kind} {entity} is {value}."),
    Framing("news", "It was confirmed on Monday that {value} is indeed the {attribute} of {entity}."),
    Framing("letter", "Dear friend, you wrote about {entity}. Its {attribute} is {value}. Yours ever."),
    Framing("quiz", "Quiz: name the {attribute} of the {kind} called {entity}. Solution: {value}."),
    Framing("notes", "Notes on {entity}. Kind: {kind}. Its {attribute}: {value}."),
)
"""The dozen of a varied lesson (ours); the first one is what a repeated lesson repeats."""

STATEMENT = TAUGHT[0]

ASKED = (
    Framing(
        "pupils", "Every pupil has heard of the {kind} {entity}, and that its {attribute} is called {value}"
    ),
    Framing("traveller", "If a traveller wants to know the {attribute} of {entity}, tell them: {value}"),
    Framing("agreement", "Speaking of {entity}, everybody agrees that the {attribute} must be {value}"),
    Framing("recall", "Which {attribute} belongs to the {kind} {entity}? As far as I recall, {value}"),
)
"""Framings that no lesson uses (ours)."""
