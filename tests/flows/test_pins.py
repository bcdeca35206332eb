"""Pin files are small, stable and say what to do when they are not there."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.errors import PinError
from flows.pins import COMMANDS, Pin, read_pin, read_pins, write_pin

REF = "codec/docs@" + "a" * 64


def test_equal_pins_are_equal_bytes_and_read_back(tmp_path: Path) -> None:
    first = write_pin(tmp_path / "one", Pin(stage="codec", refs=(REF,), figures={"b": 1.5, "a": 2}))
    second = write_pin(tmp_path / "two", Pin(stage="codec", figures={"a": 2, "b": 1.5}, refs=(REF,)))
    assert first.read_bytes() == second.read_bytes()
    assert read_pin(tmp_path / "one", "codec").one("codec").version == "a" * 64


def test_a_missing_pin_names_the_command_that_writes_it(tmp_path: Path) -> None:
    for stage, command in COMMANDS.items():
        with pytest.raises(PinError, match=f"run `{command}` first"):
            read_pin(tmp_path, stage)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"stage": "codec", "surprise": 1}', '{"stage": "nowhere"}', "\x00\xff"]
)
def test_a_damaged_pin_is_refused_in_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "codec.json").write_text(content, encoding="latin-1")
    with pytest.raises(PinError, match="is not a pin file"):
        read_pin(tmp_path, "codec")


@pytest.mark.parametrize(("make", "what"), [(Path.mkdir, "folder"), (os.mkfifo, "pipe")])
def test_what_stands_in_place_of_a_pin_is_refused_in_one_sentence(
    tmp_path: Path, make: Callable[[Path], None], what: str
) -> None:
    make(tmp_path / "memory.json")
    for read in (lambda: read_pin(tmp_path, "memory"), lambda: read_pins(tmp_path)):
        with pytest.raises(PinError, match=rf"memory\.json is a {what}; put a pin file there"):
            read()


def test_a_pin_of_another_stage_is_refused(tmp_path: Path) -> None:
    write_pin(tmp_path, Pin(stage="core")).rename(tmp_path / "codec.json")
    with pytest.raises(PinError, match="is the pin of stage 'core', not of 'codec'"):
        read_pin(tmp_path, "codec")


def test_asking_for_the_only_element_of_a_kind_fails_where_there_is_none(tmp_path: Path) -> None:
    pin = Pin.model_validate(json.loads(Pin(stage="codec", refs=(REF,)).model_dump_json()))
    with pytest.raises(PinError, match="names 0 elements of kind 'tokenizer'"):
        pin.one("tokenizer")
