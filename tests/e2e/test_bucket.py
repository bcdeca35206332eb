"""The README's way from an empty bucket to a scheduled build works as it is shown there."""

import json
import shlex
import shutil
from itertools import count

import pytest

from flows.params import load_params
from store import Store
from tasks.corpus.shards import is_worker_shard, shard_of
from tests.e2e.serving import served_states
from tests.e2e.test_readme import BLOCKS, TEXT
from tests.e2e.workplace import ROOT, Workplace, wait_for
from tests.e2e.workplace import ended as ended_of
from tests.seaweedfs import S3Server


@pytest.mark.s3
@pytest.mark.slow
@pytest.mark.parametrize(
    "served", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["updated", "served"]
)
def test_an_empty_bucket_gets_a_scheduled_build_as_shown(
    fresh: Workplace,
    s3_server: S3Server,
    with_server: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    served: bool,
) -> None:
    [block] = [block for _, block in BLOCKS if "$ cellar serve" in block]
    export, *commands = [line[2:].partition("  #")[0].strip() for line in block.splitlines()]
    assert commands == ["cellar doctor", "cellar init", "cellar update", "cellar serve"]
    exported = dict(pair.split("=", 1) for pair in shlex.split(export)[1:])
    profile = exported["AWS_PROFILE"]
    (fresh.folder / "config").write_text(
        f"[profile {profile}]\nregion = us-east-1\nendpoint_url = {s3_server.endpoint}\n"
        f"aws_access_key_id = {s3_server.access_key}\naws_secret_access_key = {s3_server.secret_key}\n"
    )
    shutil.copy(ROOT / "prefect.yaml", fresh.folder)
    environment = exported | {
        "AWS_CONFIG_FILE": str(fresh.folder / "config"),
        "CELLAR_STORE": f"{s3_server.url()}/cellar",
        "CELLAR_SERVE_PORT": "0",
    }
    for command in ("doctor", "init", "update"):
        ended = fresh.cellar(command, **environment, **({} if served else with_server))
        assert ended.code == 0, (command, ended.err)
    head, _, snapshot = ended.out.splitlines()[-2].removeprefix("head ").partition(": new -> ")
    shards = load_params(fresh.folder / "params.yaml").corpus.shards
    name = next(name for name in map(str, count()) if is_worker_shard(shard_of(name, shards)))
    (fresh.folder / "texts" / f"{name}.txt").write_text(TEXT * 3)

    for variable, value in s3_server.environment().items():
        monkeypatch.setenv(variable, value)
    store = Store.open(environment["CELLAR_STORE"])
    assert store.head(head) == snapshot
    if not served:
        return
    serving = fresh.start("serve", "--now", "update", **environment)
    try:
        wait_for(lambda: store.head(head) != snapshot, serving, every=0.2)
        wait_for(lambda: "Completed" in served_states(fresh, "update"), serving, every=0.2)
    finally:  # at once, while the process of the run may still be ending
        serving.terminate()
        stopped = ended_of(serving)
    assert stopped.code in (0, 130), stopped.err
    completed = ("runs", "--flow", "update", "--state", "completed", "--json")
    [run] = json.loads(fresh.cellar(*completed, **environment).out)
    assert run["snapshot"] not in (None, snapshot)
    assert json.loads(fresh.cellar("head", "--json", **environment).out) == {head: run["snapshot"]}
