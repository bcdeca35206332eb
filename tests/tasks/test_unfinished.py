"""An interrupted evaluation goes on from the rows that it kept, and never from others."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tasks.progress import Progress, silent
from tasks.unfinished import Unfinished
from tests.tasks.killing import Killed, stop_at


@dataclass(frozen=True)
class Row:
    item: int
    text: str
    value: float


class Maker:
    """Makes two rows an item, and remembers for which items it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, items: range) -> list[Row]:
        self.asked += items
        return [Row(item, side, item / 3) for item in items for side in ("left", "right")]

    def rows(
        self, unfinished: Unfinished, part: str = "a", items: int = 5, progress: Progress = silent
    ) -> list[Row]:
        return unfinished.rows(part, Row, items, self, each=2, per_item=2, progress=progress)


WHOLE = Maker().rows(Unfinished())


def test_rows_that_were_kept_are_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        Maker().rows(Unfinished(tmp_path, "recipe", 0), progress=stop_at(4))
    maker, seen = Maker(), list[int]()
    unfinished = Unfinished(tmp_path, "recipe", 0)

    assert maker.rows(unfinished, progress=stop_at(-1, seen)) == WHOLE
    assert maker.asked == [4]
    assert seen == [4, 5]
    done = Maker()
    assert done.rows(unfinished, progress=stop_at(-1, seen)) == WHOLE
    assert (done.asked, seen[2:]) == ([], [5])
    unfinished.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_is_done_is_kept_however_seldom_that_is_due(tmp_path: Path) -> None:
    Maker().rows(Unfinished(tmp_path, "recipe", 1e9))
    maker = Maker()
    assert maker.rows(Unfinished(tmp_path, "recipe", 1e9)) == WHOLE
    assert maker.asked == []


@pytest.mark.parametrize(
    ("recipe", "part", "items"),
    [("other", "a", 5), ("recipe", "b", 5), ("recipe", "a", 6), ("recipe", "a", 3)],
)
def test_rows_of_another_recipe_part_or_number_of_items_are_not_taken(
    tmp_path: Path, recipe: str, part: str, items: int
) -> None:
    Maker().rows(Unfinished(tmp_path, "recipe", 0))
    maker = Maker()
    found = maker.rows(Unfinished(tmp_path, recipe, 0), part, items)
    assert maker.asked == list(range(items))
    assert found == Maker().rows(Unfinished(), items=items)


def test_a_damaged_file_is_not_taken_and_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    Maker().rows(Unfinished(tmp_path, "recipe", 0))
    [path] = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    maker = Maker()
    assert maker.rows(Unfinished(tmp_path, "recipe", 0)) == WHOLE
    assert maker.asked == [0, 1, 2, 3, 4]
    path.unlink()
    Maker().rows(Unfinished())
    assert list(tmp_path.iterdir()) == []


def test_what_is_kept_of_a_published_evaluation_goes_though_no_part_was_asked_for(tmp_path: Path) -> None:
    for recipe in ("recipe", "recipe of another"):
        Maker().rows(Unfinished(tmp_path, recipe), part="a")
        Maker().rows(Unfinished(tmp_path, recipe), part="b")
    Unfinished(tmp_path, "recipe").remove()
    assert len(list(tmp_path.iterdir())) == 2
    Unfinished(tmp_path, "recipe of another").remove()
    assert list(tmp_path.iterdir()) == []
