"""Pages of elements hold each name once, in order, and hardly change when one comes or goes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from flows.site.names import LEAST, MOST, Page, Places, anchor, call, pages_of, shards_of

NAMES = st.sets(
    st.tuples(st.sampled_from(["memory", "skill"]), st.integers(0, 5000)).map(lambda p: f"{p[0]}/{p[1]:05d}"),
    max_size=400,
).map(sorted)


@given(NAMES)
def test_every_name_is_on_one_page_of_its_kind_and_found_there(names: list[str]) -> None:
    pages = list(pages_of(names))
    assert [name for page in pages for name in page] == names
    for page, after in pairwise(pages):
        assert len({name.split("/")[0] for name in page}) == 1
        assert len(page) <= MOST
        assert len(page) >= LEAST or page[0].split("/")[0] != after[0].split("/")[0]
    places = Places([Page(page[0], page[-1], len(page)) for page in pages])
    for page, place in zip(pages, places.pages, strict=True):
        assert all(places.link(name) == f"{place.path}#{anchor(name)}" for name in page)
    assert places.link("zzz/not there") == places.link("") == ""
    assert [page for shard in shards_of(pages) for page in shard] == pages


def test_one_more_name_leaves_nearly_all_pages_as_they_are() -> None:
    names = [f"memory/{number:05d}" for number in range(0, 20_000, 2)]
    before = {tuple(page) for page in pages_of(names)}
    for new in range(1, 20_000, 997):
        after = {tuple(page) for page in pages_of(sorted([*names, f"memory/{new:05d}"]))}
        assert len(after - before) <= 12
        assert len(before) > 200


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner, max_size=3), max_leaves=5))
def test_data_in_a_script_is_never_code(value: object) -> None:
    script = call("f", value)
    assert script.isascii()
    assert not set("<>&") & set(script)
    assert len(script.splitlines()) == 1
