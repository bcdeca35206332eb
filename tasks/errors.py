"""Errors of the computations in `tasks/`."""


class TaskError(ValueError):
    """Root of the errors of `tasks/`; the input has to change."""

    exit_code = 2


class VocabularyTooLarge(TaskError):
    """The vocabulary has more tokens than Binary16 can tell apart."""


class BadPayload(TaskError):
    """A payload is not what its reader expects."""

    exit_code = 5


class BadCorpus(TaskError):
    """The text to read is missing, unreadable as a whole, or leaves no document."""


class BadTokenizer(TaskError):
    """A tokenizer file is not a byte-level BPE tokenizer that can be used here."""
