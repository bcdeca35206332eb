"""What one room logged in a test: threads of Prefect, which outlive the test that began them, log too."""

import pytest


def said(caplog: pytest.LogCaptureFixture, room: str) -> list[str]:
    """Return the messages of the loggers of ``room``, a module or package, in order."""
    return [record.getMessage() for record in caplog.records if f"{record.name}.".startswith(f"{room}.")]
