"""Fixed token identities: distinct, frozen, recomputable."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.codec import CODE_BITS, MAX_VOCABULARY, Binary16, Codec, CodecArchitecture, orthogonal_lift
from tasks.errors import VocabularyTooLarge

IDENTITY = Binary16(MAX_VOCABULARY, 24, seed=3)
TOKEN = st.integers(0, MAX_VOCABULARY - 1)


@settings(deadline=None)
@given(TOKEN, TOKEN)
def test_two_tokens_differ_in_as_many_places_as_their_numbers_have_different_bits(a: int, b: int) -> None:
    codes = IDENTITY.code(torch.tensor([a, b]))

    assert codes.abs().eq(1).all()
    assert int((codes[0] != codes[1]).sum()) == (a ^ b).bit_count()


@settings(deadline=None)
@given(st.integers(CODE_BITS, 96), st.integers(0, 2**31))
def test_the_lift_has_orthogonal_rows_and_gives_codes_unit_mean_square(width: int, seed: int) -> None:
    lift = orthogonal_lift(width, seed)

    torch.testing.assert_close(lift @ lift.T, torch.eye(CODE_BITS) * width / CODE_BITS, atol=1e-4, rtol=0)
    lifted = Binary16(100, width, seed)(torch.tensor(77))
    assert float(lifted.square().mean()) == pytest.approx(1, abs=1e-4)


def test_identities_are_recomputed_from_their_seed_and_never_stored_or_trained() -> None:
    again = Binary16(MAX_VOCABULARY, 24, seed=3)

    assert torch.equal(again.lift_KS, IDENTITY.lift_KS)
    assert not torch.equal(Binary16(10, 24, seed=4).lift_KS, IDENTITY.lift_KS)
    assert not list(IDENTITY.parameters())
    assert not IDENTITY.state_dict()


def test_the_codebook_holds_what_single_tokens_get() -> None:
    identity = Binary16(40, 32, seed=1)

    assert torch.allclose(identity.codebook()[7], identity(torch.tensor([7]))[0])


def test_a_vocabulary_that_sixteen_bits_cannot_tell_apart_is_refused_in_words() -> None:
    with pytest.raises(VocabularyTooLarge, match=r"65537 tokens.*65536"):
        Codec(CodecArchitecture(), MAX_VOCABULARY + 1, torch.Generator())


def test_an_outline_has_shapes_and_types_and_loads_nothing_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Binary16(512, 32, 0)
    monkeypatch.setattr(torch, "arange", None)  # on the meta device it takes torch most of a second

    with torch.device("meta"):
        outline = Binary16(512, 32, 0)

    for name, expected in made.named_buffers():
        found = outline.get_buffer(name)
        assert (found.is_meta, found.shape, found.dtype) == (True, expected.shape, expected.dtype)
    codebook = outline.codebook()
    assert (codebook.is_meta, codebook.shape, codebook.dtype) == (True, (512, 32), torch.float32)
