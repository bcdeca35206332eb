"""From settings and parameters to the frozen language model that a flow attaches things to."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from flows import watch
from flows.place import device_of
from flows.settings import Settings
from store import Ref, Store
from tasks.hosts.params import HostParams

if TYPE_CHECKING:
    from tasks.hosts import Host

_Key = tuple[object, ...]
_kept: dict[_Key, "Host"] = {}
"""The host that the last computation used, at most one: the tasks of a flow follow each other on it."""
_keeping = Lock()


def host_ref(store: Store, params: HostParams) -> Ref:
    """The newest host of that name; raises `UnknownHost`, which says how to bring one."""
    from tasks.hosts import find_host

    return find_host(store, params.name).ref


@contextmanager
def computing_host(
    settings: Settings, store: Store, params: HostParams, ref: Ref | None = None
) -> Iterator["Host"]:
    """The host of the parameters, or exactly `ref`, for a flow's work: on a GPU of its own, or the CPU.

    On the CPU the process keeps it for its next computation, as long as no file of it changes. Whoever
    computes at the same time in the same process gets another one, since shadows are attached to it.
    """
    from flows.workers.gpu import computing_device

    with computing_device(settings) as device:
        host = open_host(settings, store, params, ref, device=device)
        key = _key(settings, host)
        with _keeping:
            host = _kept.pop(key, host)
            _kept.clear()  # of another host, before this one takes its place
        yield host
        if device == "cpu":  # a GPU is given back empty
            with _keeping:
                _kept.clear()
                _kept[key] = host


def open_host(
    settings: Settings,
    store: Store,
    params: HostParams,
    ref: Ref | None = None,
    *,
    device: str | None = None,
) -> "Host":
    """The host of the parameters, or exactly `ref`, from the folder of hosts.

    `device` is otherwise that of the settings. Its parts are read when they are used, every byte compared
    with what was published. The process keeps memory that tensors free from here on. Raises `UnknownHost`
    where the store or the folder lacks it.
    """
    from tasks.hosts.step import prepare_host
    from tasks.processor import keep_freed_memory

    keep_freed_memory()
    return prepare_host(
        store,
        settings.hosts,
        ref or host_ref(store, params),
        device=device or device_of(settings),
        dtype=params.dtype,
        display=partial(watch.progress, "check host", "MB"),
    )


def _key(settings: Settings, host: "Host") -> _Key:
    """What tells hosts apart: version, numbers, place, and the state of every file that is read there."""
    from tasks.hosts.step import host_folder, used_files

    folder = host_folder(settings.hosts, host.ref).resolve()
    return (host.ref, host.device, host.dtype, folder, *map(_state, used_files(folder)))


def _state(path: Path) -> _Key:
    try:
        found = path.stat()
    except OSError:  # who reads it says what is wrong
        return (path.name,)
    return path.name, found.st_size, found.st_mtime_ns, found.st_ino
