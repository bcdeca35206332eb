"""Errors of the computations in `tasks/`."""

from store.errors import InputError, IntegrityError, StorageUnavailable


class TaskError(InputError):
    """Root of the input errors of `tasks/`: what was passed in has to change."""


class VocabularyTooLarge(TaskError):
    """The vocabulary has more tokens than Binary16 can tell apart."""


class BadPayload(IntegrityError):
    """A payload is not what its reader expects."""


class BadCorpus(TaskError):
    """The text to read is missing, unreadable as a whole, or leaves no document."""


class BadTokenizer(TaskError):
    """A tokenizer file is not a byte-level BPE tokenizer that can be used here."""


class BadQuery(TaskError):
    """A cue or a question holds nothing to search for, or tokens that the index does not know."""


class BadQuestion(TaskError):
    """A question, its feedback or the factors it is read with do not fit a learner."""


class Diverged(TaskError):
    """Factors hold a number that is not finite: the steps were too large."""


class SessionFull(TaskError):
    """A live session, or its pending feedback, is larger than one may be."""


class UnfitHost(TaskError):
    """A language model is not built, or does not compute, as a method needs it to."""


class BadProgram(TaskError):
    """A file does not hold a program that can be published as a skill."""


class BadStack(TaskError):
    """A head, a tag or a set of shadows is not what can be attached to a host together."""


class BadHost(TaskError):
    """A folder or file holds no frozen language model that can be used here."""


class UnknownHost(TaskError):
    """Nothing is known of a host of that name: where it comes from, or that it was ever added."""

    exit_code = 4


class HostChanged(IntegrityError):
    """A folder no longer holds the host that was published under its name."""


class BrokenHost(IntegrityError):
    """A weight of a host is no finite number, so that nothing that it computes is one."""


class DownloadFailed(StorageUnavailable):
    """A package that a host comes in could not be downloaded, or is not the one that is known."""


class SkillTrapped(TaskError):
    """A skill ended in a trap instead of a value."""


class StaleIndex(TaskError):
    """An index was built from other element versions than those of the snapshot it is read from."""

    exit_code = 5


class StaleInputs(TaskError):
    """Artifacts that were given together were not made from one another."""

    exit_code = 5


class TooLittleText(TaskError):
    """There is too little text, or there are too few elements, to train or evaluate on."""


class TooFewGroups(TaskError):
    """The ranges of public programs hold fewer parameter groups than the splits ask for."""


class Exploded(TaskError):
    """Writing a text into shadows went astray at its first step."""
