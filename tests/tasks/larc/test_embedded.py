"""Rows are embedded once, and leave when there is no room for them."""

import torch

from tasks.larc.embedded import EmbeddedRows
from tests.tasks.larc.conftest import TinyHost, make_questions


def test_equal_questions_are_embedded_once(host: TinyHost) -> None:
    rows = EmbeddedRows(host)
    [question], [same] = make_questions(1), make_questions(1)
    tree, embeds = rows.lay(question)
    assert rows.lay(same)[1] is embeds
    assert len(rows) == 1
    expected = host.model.get_input_embeddings()(torch.from_numpy(tree.ids_T))
    assert torch.equal(embeds, expected)
    assert not embeds.requires_grad


def test_the_least_recently_used_leaves_first(host: TinyHost) -> None:
    questions = make_questions(3)
    sizes = []
    for question in questions:
        alone = EmbeddedRows(host)
        alone.lay(question)
        sizes.append(alone.bytes)
    rows = EmbeddedRows(host, most_bytes=sum(sizes) - 1)
    first, second = (rows.lay(question)[1] for question in questions[:2])
    rows.lay(questions[0])
    rows.lay(questions[2])
    assert rows.lay(questions[0])[1] is first
    assert rows.bytes == sizes[0] + sizes[2]
    assert rows.lay(questions[1])[1] is not second


def test_one_row_larger_than_all_room_is_still_read(host: TinyHost) -> None:
    rows = EmbeddedRows(host, most_bytes=1)
    for question in make_questions(2):
        assert len(rows.lay(question)[0]) > 0
    assert len(rows) == 1
