"""A real Prefect server for the whole session: starting one takes seconds."""

from collections.abc import Iterator

import pytest

from flows.server import prefect_api


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an embedded Prefect API that flows of this process use."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_HOME", str(tmp_path_factory.mktemp("prefect-home")))
        patch.delenv("PREFECT_API_URL", raising=False)
        with prefect_api(tmp_path_factory.mktemp("prefect")) as url:
            yield url
