"""Live sessions: resumed bit for bit at every step, refused when they are not what they say they are."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.errors import BadPayload, Diverged, SessionFull
from tasks.larc import (
    PENDING_BYTES,
    Episode,
    ExpectedCost,
    Learner,
    Session,
    begin,
    decode_session,
    encode_session,
    load_session,
    new_slow_state,
    read,
    save_session,
    update,
)
from tasks.larc.session import LIVE_BYTES
from tasks.payload import pack_tensors, unpack_tensors
from tests.tasks.forging import changed_header, forged
from tests.tasks.larc.conftest import WIDTH, make_questions

HOST = "ab" * 32
QUESTIONS = make_questions(2, seed=8)
STEPS = 4


def start() -> dict[str, Episode]:
    return {
        name: begin(new_slow_state(WIDTH, seed=place, deviation=0.2, insertion=0), seed=place)
        for place, name in enumerate(("keep", "sham"))
    }


def one_step(learner: Learner, episodes: dict[str, Episode]) -> dict[str, Episode]:
    """An update whose costs are drawn from each episode's private stream."""
    drawn = [episode.stream.permutation(4) / 4 for episode in episodes.values()]
    costs = ExpectedCost(torch.from_numpy(np.stack(drawn)).float())
    stepped, _ = update(learner, list(episodes.values()), QUESTIONS, [0, 1], costs)
    return dict(zip(episodes, stepped, strict=True))


@pytest.mark.parametrize("interrupted", range(STEPS + 1))
def test_a_session_resumes_bit_for_bit_at_every_step(
    learner: Learner, tmp_path: Path, interrupted: int
) -> None:
    path = tmp_path / "live" / "a.session"
    straight = start()
    for _ in range(STEPS):
        straight = one_step(learner, straight)
    broken = start()
    for done in range(STEPS):
        if done == interrupted:
            broken = saved_and_loaded(path, broken)
        broken = one_step(learner, broken)
    if interrupted == STEPS:
        broken = saved_and_loaded(path, broken)
    assert encode_session(Session(HOST, straight)) == encode_session(Session(HOST, broken))
    found, expected = (read(learner, list(ones.values()), QUESTIONS, [0, 1]) for ones in (broken, straight))
    assert torch.equal(found, expected)
    assert [one.stream.random() for one in broken.values()] == [
        one.stream.random() for one in straight.values()
    ]


def saved_and_loaded(path: Path, episodes: dict[str, Episode]) -> dict[str, Episode]:
    save_session(path, Session(HOST, episodes))
    return dict(load_session(path, host=HOST, width=WIDTH).episodes)


def test_resuming_is_not_resetting(learner: Learner, tmp_path: Path) -> None:
    moved = one_step(learner, start())
    again = saved_and_loaded(tmp_path / "a.session", moved)
    assert torch.equal(again["keep"].B_Dr, moved["keep"].B_Dr)
    assert again["keep"].steps == 1
    assert not torch.equal(again["keep"].B_Dr, again["keep"].bound.B_Dr)
    assert torch.equal(again["keep"].bound.A_rD, moved["keep"].bound.A_rD)


def test_what_its_owner_keeps_comes_back_as_it_was(tmp_path: Path) -> None:
    session = Session(
        HOST,
        start(),
        cursor=17,
        pending=[{"id": 3, "prompt": [4, 5], "reset": [0.1, 0.2]}],
        memory=[{"label": "success"}, "ü"],
        records={"hedge": {"losses": [0.3, 1e-300]}},
    )
    path = save_session(tmp_path / "a.session", session)
    found = load_session(path, host=HOST, width=WIDTH)
    assert (found.cursor, found.pending, found.memory) == (17, session.pending, session.memory)
    assert found.records == session.records
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_too_large_is_refused_and_the_earlier_file_stays(tmp_path: Path) -> None:
    path = save_session(tmp_path / "a.session", Session(HOST, start()))
    before = path.read_bytes()
    with pytest.raises(SessionFull, match="pending predictions take"):
        save_session(path, Session(HOST, start(), pending=["x" * PENDING_BYTES]))
    with pytest.raises(SessionFull, match="keep fewer episodes or cases"):
        save_session(path, Session(HOST, start(), records={"a": "x" * LIVE_BYTES}))
    assert path.read_bytes() == before


def _damaged(name: str, number: float) -> bytes:
    tensors, record = unpack_tensors(encode_session(Session(HOST, start())), what="larc-session")
    tensors[name][0, 0] = number
    return pack_tensors(tensors, what="larc-session", record=record)


def test_factors_that_are_not_finite_are_not_saved() -> None:
    episodes = start()
    episodes["sham"].A_rD[1, 2] = torch.nan
    with pytest.raises(Diverged, match="episode sham are not finite; take smaller steps"):
        encode_session(Session(HOST, episodes))


@pytest.mark.parametrize(
    ("payload", "host", "width", "said"),
    [
        (b"", HOST, WIDTH, "is not a larc-session"),
        (b"x" * (LIVE_BYTES + 1), HOST, WIDTH, "at most; begin a new one"),
        (encode_session(Session(HOST, start())), "cd" * 32, WIDTH, "is of host abababababab, not cdcd"),
        (encode_session(Session(HOST, start())), HOST, 64, "is 32 wide, its host 64"),
        (_damaged("keep.A", torch.nan), HOST, WIDTH, "keep.A of the session holds"),
        (_damaged("sham.bound.B", torch.inf), HOST, WIDTH, "sham.bound.B of the session holds"),
    ],
)
def test_what_is_no_session_of_this_host_is_refused(payload: bytes, host: str, width: int, said: str) -> None:
    with pytest.raises(BadPayload, match=said):
        decode_session(payload, host=host, width=width)


def test_the_sentence_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.session"
    path.write_bytes(b"nothing")
    with pytest.raises(BadPayload, match=r"a\.session: the payload is not"):
        load_session(path, host=HOST, width=WIDTH)


SESSION = encode_session(Session(HOST, start(), cursor=2, pending=[1], records={"a": [1, 2]}))


@given(payload=forged(SESSION, changed_header))
@settings(max_examples=150, deadline=None)
def test_whatever_a_session_holds_it_loads_or_is_refused(payload: bytes) -> None:
    try:
        session = decode_session(payload, host=HOST, width=WIDTH)
    except BadPayload:
        return
    for episode in session.episodes.values():
        assert episode.A_rD.isfinite().all()
        episode.stream.random()


@given(st.integers(0, 2**32), st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_a_stream_comes_back_wherever_it_stands(seed: int, drawn: int) -> None:
    [name, *_], episode = ["one"], begin(new_slow_state(WIDTH, seed=0), seed=seed)
    episode.stream.integers(2**16, size=drawn, dtype="uint32")
    session = decode_session(encode_session(Session(HOST, {name: episode})), host=HOST, width=WIDTH)
    assert session.episodes[name].stream.permutation(9).tolist() == episode.stream.permutation(9).tolist()
