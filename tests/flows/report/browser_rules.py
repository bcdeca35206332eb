"""How a browser lays a page out: no wider than its window, dark where the reader's screen is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


def check_laid_out(path: Path, folder: Path, width: int, scheme: str) -> None:
    """A page in a window so many pixels wide and of a scheme, `light` or `dark`; skips without Chromium.

    It is no wider than its window, no caption of a table is cut off, and it is dark where it should be.
    """
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs a Chromium on PATH to lay the page out")
    # The page itself has no script; this copy gets one that writes down how wide and in which colours it came
    # out. A framed page prefers the colour scheme of its frame.
    probe = (
        f'<iframe id="f" style="width:{width}px;height:800px;border:0;color-scheme:{scheme}" srcdoc="PAGE">'
        "</iframe><script>document.getElementById('f').onload = e => {"
        "const d = e.target.contentDocument, root = d.documentElement, style = getComputedStyle(d.body);"
        "const cut = [...d.querySelectorAll('caption > span')].filter(e => "
        "e.getBoundingClientRect().right > root.clientWidth || e.scrollWidth > e.clientWidth).length;"
        "document.title = `measured ${cut} cut, ${root.scrollWidth} of ${root.clientWidth}, `"
        "+ `${style.color} on `"
        "+ getComputedStyle(style.backgroundColor == 'rgba(0, 0, 0, 0)' ? root : d.body).backgroundColor; }"
        "</script>"
    )
    text = path.read_text(encoding="utf-8").replace("&", "&amp;").replace('"', "&quot;")
    (folder / "probe.html").write_text(probe.replace("PAGE", text), encoding="utf-8")
    command = [browser, *_FLAGS, f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000"]
    command += ["--dump-dom", (folder / "probe.html").as_uri()]
    dumped = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    found = re.search(r"measured (\d+) cut, (\d+) of (\d+), rgb\(([\d, ]+)\) on rgb\(([\d, ]+)\)", dumped)
    assert found, dumped[:500]
    assert int(found[1]) == 0
    assert int(found[2]) <= int(found[3])
    ink, paper = (sum(map(int, found[group].split(","))) / 3 for group in (4, 5))
    assert (paper < ink) == (scheme == "dark")
    assert abs(paper - ink) > 128
