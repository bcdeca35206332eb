"""Questions to a host: prompts and candidate programs in its own tokens."""

from collections.abc import Callable

from tasks.errors import BadQuestion
from tasks.larc import Question
from tasks.programs import Episode, Group, ProgramsParams, answer, feedback_prompt, prompt, support
from tasks.study.params import StudyParams

Encode = Callable[[str], list[int]]


class Questioner:
    """Puts groups and episodes into questions for one tokenizer, within the limits of the study."""

    def __init__(self, encode: Encode, end: int, programs: ProgramsParams, study: StudyParams) -> None:
        """`encode` gives the token ids of a text, `end` is the id that ends a sequence."""
        self._encode, self._end = encode, end
        self._programs, self._study = programs, study
        self._asked: dict[Group, Question] = {}

    def ask(self, group: Group) -> Question:
        """The question that every episode of a group shares: nothing in it tells the target.

        Raises `BadQuestion` when the tokenizer makes prompt or candidates too long.
        """
        if group not in self._asked:
            self._asked[group] = self._question(prompt(group), group)
        return self._asked[group]

    def tell(self, episode: Episode) -> Question:
        """The question with the episode's feedback in words (a baseline)."""
        feedback = support(episode, self._programs)
        return self._question(feedback_prompt(episode.group, feedback), episode.group)

    def _question(self, text: str, group: Group) -> Question:
        prompt_ids = tuple(self._encode(text))
        candidates = tuple((*self._encode(answer(one)), self._end) for one in group.candidates)
        longest = max(map(len, candidates))
        for what, size, most, name in (
            ("prompt", len(prompt_ids), self._study.prompt_tokens, "prompt_tokens"),
            ("longest candidate", longest, self._study.answer_tokens, "answer_tokens"),
        ):
            if size > most:
                raise BadQuestion(
                    f"the {what} of {group.name} has {size} tokens of this host, {most} are allowed; raise "
                    f"study.{name} or choose smaller ranges"
                )
        return Question(prompt_ids, candidates)
