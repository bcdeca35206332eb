"""From settings to the things they name: the store with this run's record, the device, the threads."""

import os
import threading
from typing import Any

from flows.errors import SettingsError
from flows.origin import code, origin
from flows.settings import Settings
from store import Store

_NOT_RECORDED = {"store", "pins", "quiet", "hosts", "cache_dir", "cache_bytes", "serve_port"}
_lock = threading.Lock()
_usual: int | None = None


def open_store(settings: Settings) -> Store:
    """Open the configured store; every commit made through it records this run, its settings and origin."""
    return Store.open(settings.store, run=_run_record(settings), cache=settings.store_cache())


def _run_record(settings: Settings) -> dict[str, Any]:
    from prefect.runtime import flow_run

    where = settings.model_dump(mode="json", exclude=_NOT_RECORDED)
    return {"flow": flow_run.flow_name, "flow_run": str(flow_run.id), "settings": where, **origin(), **code()}


def prepare_threads(settings: Settings, *, sharing: int = 1) -> None:
    """Give a computation the threads of the settings; otherwise its part of the cores that so many share."""
    import torch

    usual = _usual_threads()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = settings.threads or (usual if sharing == 1 else max(1, cores // sharing))
    if threads != torch.get_num_threads():
        torch.set_num_threads(threads)


def _usual_threads() -> int:
    """What torch would take by itself, before anything here has changed it."""
    import torch

    global _usual
    with _lock:
        if _usual is None:
            _usual = torch.get_num_threads()
    return _usual


def device_of(settings: Settings) -> str:
    """The device to compute on; `auto` is a GPU where there is one.

    Raises:
        SettingsError: a GPU was asked for by name and there is none.
    """
    if settings.device == "cpu":
        return "cpu"  # a process that only hands out work needs no torch to know it
    import torch

    available = torch.cuda.is_available()
    if settings.device == "auto":
        return "cuda" if available else "cpu"
    if settings.device.startswith("mps") and not torch.backends.mps.is_available():
        raise SettingsError(
            f"CELLAR_DEVICE is {settings.device!r}, which this machine lacks; use cpu or auto"
        )
    if settings.device.startswith("cuda") and not available:
        raise SettingsError(
            f"CELLAR_DEVICE is {settings.device!r} but no GPU is available here; use cpu or auto"
        )
    return settings.device
