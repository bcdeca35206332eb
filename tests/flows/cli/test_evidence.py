"""What an evaluation is asked to do is looked at before anything is started."""

from collections.abc import Callable

import pytest

Cellar = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("element", ["@@", "codec/docs", f"codec/docs@{'0' * 64}", "memory/a@0123456789ab"])
def test_a_replacement_that_names_no_memory_is_refused_as_bad_input(cellar: Cellar, element: str) -> None:
    code, _, err = cellar("eval", "run", "replacement", "--set", f"replacement.element={element}")
    assert code == 2
    assert f"--set replacement.element={element}: " in err
    assert "write memory/NAME, or memory/NAME@VERSION" in err
    assert err.count("\n") == 1
