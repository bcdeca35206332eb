"""The vocabulary of prompts and answers, learned on training prompts (ours).

A core that reads arithmetic phrases needs few tokens, and one of its own does not depend on which corpus a
store holds.
"""

from tasks.corpus import Tokenizer, TokenizerParams, train_bpe
from tasks.skills.params import TokenParams
from tasks.skills.tasks import TaskMaker


def learn_vocabulary(tasks: TaskMaker, params: TokenParams) -> Tokenizer:
    """A byte-level BPE tokenizer of training prompts and their answers; equal inputs give equal bytes."""
    made = tasks.make(params.prompts, seed=0)
    texts = [text for task in made for text in (f" {task.prompt}\n", str(task.answer))]
    return train_bpe(texts, TokenizerParams(vocab_size=params.vocab_size))
