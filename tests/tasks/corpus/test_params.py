"""Corpus parameters say early what does not fit together."""

import pytest
from pydantic import ValidationError

from tasks.corpus import CorpusParams, TokenizerParams


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"reader": "jsonl"}, "needs a path"),
        ({"reader": "folder", "path": "x", "split_on": "y"}, "takes no split_on"),
        ({"packages": ["numpy"], "path": "x"}, "takes no path"),
        ({"reader": "text", "path": "x", "split_on": "("}, "no regular expression"),
        ({"reader": "text", "path": "x", "split_on": "a\nb"}, "line by line"),
        ({"reader": "folder", "path": "x", "pattern": "../*"}, "no glob below the folder"),
        ({"reader": "folder", "path": "x", "pattern": "."}, "no glob below the folder"),
        ({"reader": "folder", "path": "x", "pattern": "**x"}, r"\*\* beside other characters"),
        ({"reader": "folder", "path": "x", "pattern": "a/x**/b"}, r"\*\* beside other characters"),
        ({"shards": 3}, "multiple of 2"),
        ({"name": "My Corpus"}, "should match pattern"),
        ({"shard": 8}, "Extra inputs"),
    ],
)
def test_unfit_corpus_parameters_are_refused(params: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        CorpusParams.model_validate(params)


def test_defaults_of_other_readers_may_be_written_out() -> None:
    assert CorpusParams.model_validate(CorpusParams().model_dump()) == CorpusParams()


def test_identity_holds_what_the_reader_uses_and_no_location() -> None:
    assert CorpusParams(reader="folder", path="/x", pattern="*.md").identity() == {
        "name": "docs",
        "reader": "folder",
        "pattern": "*.md",
        "min_characters": 1,
        "max_characters": 100_000,
        "limit": None,
        "shards": 16,
    }


def test_a_vocabulary_above_sixteen_bits_is_refused() -> None:
    with pytest.raises(ValidationError, match="65536, the number of codes of sixteen bits"):
        TokenizerParams(vocab_size=65_537)
