"""One computation per GPU: a limit that the Prefect API counts for all machines, and a lock for each device.

The locks keep processes of one user on one machine apart that share a folder for temporary files. Other
users, containers with a folder of their own, and programs that are not cellar's do not see them; those who
share a Prefect API are kept apart by the limit.

Leases of the limit are renewed while a computation runs. Those of a killed one end after a minute; the lock
of its device on this machine is freed by the kernel at once.
"""

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitUpdate
from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError
from prefect.concurrency.sync import concurrency

from flows import watch
from flows.errors import SettingsError
from flows.place import device_of
from flows.settings import Settings

LIMIT = "gpu"
LEASE_S = 60.0
"""The shortest that Prefect grants."""
_POLL_S = 0.2


def provide_limit(settings: Settings, *, owner: bool) -> None:
    """Create the limit at the Prefect API, or set it to the configured number of GPUs.

    `owner`: this process alone uses the API, so that slots in use are left over from a killed one. A shared
    API is changed only if `CELLAR_GPUS` says to what.

    Raises:
        SettingsError: a GPU was asked for by name and there is none.
    """
    count = settings.gpus
    if count is None and owner and device_of(settings) != "cpu":
        count = len(_devices(settings))
    if count is None:
        return
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name(LIMIT, count)
        if owner:
            client.update_global_concurrency_limit(LIMIT, GlobalConcurrencyLimitUpdate(active_slots=0))


@contextmanager
def computing_device(settings: Settings) -> Iterator[str]:
    """The device to compute on, for the duration of the block: a GPU of one's own, or the CPU.

    Raises:
        SettingsError: a GPU was asked for by name and there is none, or nobody set the limit.
    """
    if device_of(settings) == "cpu":
        yield "cpu"
        return
    with slot(), claimed(_devices(settings)) as device:
        yield device


@contextmanager
def slot() -> Iterator[None]:
    """One of the slots of the limit, waited for.

    An API that does not answer for a while ends no computation: its device is locked as well.

    Raises:
        SettingsError: the API has no such limit.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(
                concurrency(LIMIT, strict=True, lease_duration=LEASE_S, raise_on_lease_renewal_failure=False)
            )
        except ConcurrencySlotAcquisitionError as error:
            raise SettingsError(
                f"the Prefect API has no limit named {LIMIT!r} that lets a computation run on a GPU; set "
                "CELLAR_GPUS to the number of GPUs of all machines together"
            ) from error
        yield


@contextmanager
def claimed(devices: Mapping[str, str]) -> Iterator[str]:
    """One of these devices, `identity: name`, to oneself on this machine; waits until one is free.

    The kernel frees the lock of a process that ends, however it ends.

    Raises:
        SettingsError: others could write where the locks are.
    """
    folder = _lock_folder()
    while True:
        for identity, name in devices.items():
            with (folder / f"{identity}.lock").open("wb") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield name
                return
        watch.stop_if_interrupted()
        time.sleep(_POLL_S)


def _lock_folder() -> Path:
    """The folder of the locks of this user; anybody may have made one of that name among temporary files."""
    folder = Path(tempfile.gettempdir()) / f"cellar-devices-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise SettingsError(
            f"{folder} cannot hold the locks of GPUs ({error.strerror}); set TMPDIR to a folder of your own"
        ) from error
    private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    if not private or status.st_uid != os.getuid():
        raise SettingsError(
            f"{folder} is not a folder that you alone can write, so the locks of GPUs cannot lie there; "
            "remove it, or set TMPDIR to a folder of your own"
        )
    return folder


def _devices(settings: Settings) -> dict[str, str]:
    """The devices that the settings allow: what identifies each on this machine, and torch's name for it."""
    import torch

    device = device_of(settings)
    if not device.startswith("cuda"):
        return {device: device}
    numbers = [int(device[5:])] if device[5:] else list(range(torch.cuda.device_count()))
    # Numbers count what CUDA_VISIBLE_DEVICES shows to this process; another may number them otherwise.
    return {str(torch.cuda.get_device_properties(number).uuid): f"cuda:{number}" for number in numbers}
