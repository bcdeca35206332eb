"""From settings and parameters to the frozen language model that a flow attaches things to."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flows import watch
from flows.place import device_of
from flows.settings import Settings
from store import Ref, Store
from tasks.hosts.params import HostParams

if TYPE_CHECKING:
    from tasks.hosts import Host


def host_ref(store: Store, params: HostParams) -> Ref:
    """The newest host of that name; raises `UnknownHost`, which says how to bring one."""
    from tasks.hosts import find_host

    return find_host(store, params.name).ref


@contextmanager
def computing_host(settings: Settings, store: Store, params: HostParams) -> Iterator["Host"]:
    """The host of the parameters for a flow's computation: on a GPU of its own, or on the CPU."""
    from flows.workers.gpu import computing_device

    with computing_device(settings) as device:
        yield open_host(settings, store, params, device=device)


def open_host(
    settings: Settings,
    store: Store,
    params: HostParams,
    ref: Ref | None = None,
    *,
    device: str | None = None,
) -> "Host":
    """The host of the parameters, or exactly `ref`, from the folder of hosts.

    `device` is otherwise that of the settings. Every byte is compared with what was published. The process
    keeps memory that tensors free from here on. Raises `UnknownHost` where the store or the folder lacks it,
    and `HostChanged`.
    """
    from tasks.hosts.step import open_host as open_checked
    from tasks.processor import keep_freed_memory

    keep_freed_memory()
    with watch.progress("check host", "MB") as progress:
        return open_checked(
            store,
            settings.hosts,
            ref or host_ref(store, params),
            device=device or device_of(settings),
            dtype=params.dtype,
            progress=progress,
        )
