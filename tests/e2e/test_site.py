"""The site of a finished chain shows its memories as they decode, and its evaluation."""

import json
import re
from html import unescape
from pathlib import Path

from tests.e2e.workplace import Workplace


def test_a_chain_s_site_has_its_texts_and_its_figures(finished: Workplace, tmp_path: Path) -> None:
    out = tmp_path / "site"
    ended = finished.cellar("site", "build", "--json", "--no-runs", "--out", str(out))
    assert ended.code == 0, ended.err
    result = json.loads(ended.out)
    snapshot = finished.store.snapshot(str(finished.pin("snapshot").snapshot))
    memories = snapshot.rows("memory")
    assert (result["texts"], result["texts_left_out"]) == (len(memories), 0)
    pages = "".join(path.read_text() for path in (out / "elements").glob("*.html"))
    assert pages.count('class="decoded"') == len(memories)
    asked = finished.cellar("ask", "--json", "--snapshot", snapshot.id, "--context", "4", "the")
    hit = json.loads(asked.out)["hits"][0]
    article = next(part for part in pages.split("<article ") if part.startswith(f'id="{hit["name"]}"'))
    text = unescape(re.sub("<[^>]*>", "", article.split('class="decoded"')[1].partition(">")[2]))
    assert hit["text"] in text
    evaluation = finished.pin("evaluation").figures
    page = " ".join((out / "evaluations.html").read_text().split())
    assert f'<span class="value">{evaluation["nll"]["retrieved"]:.2f}</span>' in page
