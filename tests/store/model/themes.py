"""What processes do in one race, drawn at random, and what a store holds before."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.store.model.collecting import Collect
from tests.store.model.elements import ELEMENTS, SETS, SNAPSHOTS
from tests.store.model.naming import Keep, Move, Release, Tag
from tests.store.model.operations import Operation
from tests.store.model.reading import Ask, ListAll, LookAtHead, ReadElement, ReadSnapshot, Verify
from tests.store.model.writing import Pin, Publish, Work

_WHICH = st.integers(0, len(SETS) - 1)
_NUMBER = st.integers(0, len(ELEMENTS) - 1)
_PUBLISH = st.builds(Publish, st.lists(_NUMBER, min_size=1, max_size=3).map(tuple))
_WORK = st.builds(Work, st.integers(0, 1), st.sampled_from((1, 10_000)))
_PIN = st.builds(Pin, _WHICH)
_TAG = st.builds(Tag, st.sampled_from(("t", "u")), _WHICH)
_MOVE = st.builds(Move, st.just("main"), st.integers(0, 2), st.just("now") | st.none() | st.integers(0, 2))
_KEEP = st.builds(Keep, st.sampled_from(("h", "i")), st.integers(0, 2), st.sampled_from((1, 30)))
_RELEASE = st.builds(Release, st.sampled_from(("h", "i")))
_READ_SNAPSHOT = st.builds(ReadSnapshot, st.sampled_from((*SNAPSHOTS, "tag:t", "tag:u", "head:main")))
_READ = st.builds(ReadElement, _NUMBER)
_ASK = st.builds(Ask, _NUMBER)
_LOOK = st.builds(LookAtHead, st.just("main"))
_LIST, _VERIFY = st.builds(ListAll), st.builds(Verify)
_COLLECT = st.builds(Collect, st.sampled_from((0, 0, 30)))
THEMES: tuple[st.SearchStrategy[Operation], ...] = (
    st.one_of(
        *(_PUBLISH, _WORK, _PIN, _TAG, _MOVE, _KEEP, _RELEASE, _COLLECT),
        *(_READ_SNAPSHOT, _READ, _ASK, _LOOK, _LIST, _VERIFY),
    ),
    st.one_of(_PUBLISH, _WORK, _LIST, _VERIFY),
    st.one_of(_PIN, _TAG, _READ_SNAPSHOT, _VERIFY),
    st.one_of(_MOVE, _LOOK),
    st.one_of(_COLLECT, _PUBLISH, _WORK, _PIN),
    st.one_of(_COLLECT, _PIN, _TAG, _MOVE, _KEEP, _RELEASE),
    st.one_of(_COLLECT, _READ_SNAPSHOT, _READ, _VERIFY, _LIST),
)
"""What the processes of one race do: anything, or what gets in each other's way most."""

Beginning = tuple[tuple[tuple[Operation, ...], int], ...]
_SOME: tuple[Operation, ...] = (Publish(tuple(range(6))), Pin(0), Pin(1), Pin(2))
BEGINNINGS: tuple[Beginning, ...] = (
    (((*_SOME, Move("main", 0, None), Tag("t", 1)), 0),),
    (((Publish((0, 1)), Publish((6, 7)), Pin(0), Pin(3), Move("main", 0, None)), 0),),
    (((Work(0, 1), Work(1, 10_000), Pin(1)), 0),),
    (((ListAll(),), 0),),
    (((*_SOME, Publish((6, 7)), Move("main", 0, None)), 50), ((Collect(30),), 26)),
    (((Work(0, 1), Work(1, 1), Pin(0), Pin(2), Pin(4)), 50), ((Collect(0),), 26)),
)
"""What stores went through before the races: operations, and the hours after them."""
