"""Names are valid for the store whatever the source says; texts are changed as little as possible."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.element import check_full_name
from tasks.corpus.document import Document, Skipped, clean_name, clean_text, fault_of, screen

any_text = st.text(st.characters(exclude_categories=()))


@given(any_text)
def test_a_cleaned_name_is_empty_or_valid_in_the_store(raw: str) -> None:
    name = clean_name(raw)
    if name:
        check_full_name(f"memory/{name}")


@given(any_text)
def test_cleaning_a_name_twice_changes_nothing(raw: str) -> None:
    assert clean_name(clean_name(raw)) == clean_name(raw)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("numpy.linalg.svd", "numpy.linalg.svd"),
        ("<urn:uuid:39147604-bfbe>", "urn-uuid-39147604-bfbe"),
        ("../../etc/passwd", "etc/passwd"),
        ("a//b/./c", "a/b/c"),
        ("मराठी कथा", "मराठी-कथा"),
        ("cafe\u0301", "caf\u00e9"),
        ("tab\tand\nline", "tab-and-line"),
        ("***", ""),
    ],
)
def test_names_keep_what_people_recognise(raw: str, name: str) -> None:
    assert clean_name(raw) == name


def test_two_long_names_that_differ_only_at_the_end_stay_different() -> None:
    first, second = clean_name("x" * 500 + "a"), clean_name("x" * 500 + "b")

    assert first != second
    assert len(first.encode()) <= 200


def test_line_ends_and_a_byte_order_mark_are_normalised_and_nothing_else() -> None:
    assert clean_text("\ufeffa\r\nb\rc\u2028d\x0ce\n\n") == "a\nb\nc\u2028d\x0ce"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "empty"),
        ("abc", "shorter than 4 characters"),
        ("abcdefghijk", "longer than 10 characters"),
        ("abc\0def", "contains NUL characters"),
        ("abc\ud800de", "not valid Unicode (a lone surrogate)"),
        ("abcdef", None),
    ],
)
def test_an_unusable_text_is_named_by_its_fault(text: str, fault: str | None) -> None:
    assert fault_of(text, shortest=4, longest=10) == fault


def test_screening_keeps_order_and_turns_bad_documents_into_reasons() -> None:
    items = [Document("a b", "one\r\ntwo", "f"), Skipped("x", "not UTF-8"), Document("c", "  ", "f")]

    screened = list(screen(items, shortest=1, longest=100))

    assert screened == [Document("a-b", "one\ntwo", "f"), Skipped("x", "not UTF-8"), Skipped("c", "empty")]


def test_a_source_whose_file_name_is_not_utf8_is_written_out() -> None:
    [document] = screen([Document("a", "text", "caf\udce9.txt")], shortest=1, longest=9)
    assert isinstance(document, Document)
    assert document.source == "caf\\udce9.txt"
