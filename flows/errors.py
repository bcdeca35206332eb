"""Errors of the orchestration in `flows/`."""

from store.errors import (
    CellarError,
    ConfigurationError,
    ConflictError,
    InputError,
    NotFoundError,
    StorageUnavailable,
)


class PrefectServerError(StorageUnavailable):
    """No Prefect API answers, configured or embedded."""


class PinError(InputError):
    """A pin file is missing, damaged, or of another stage."""


class SettingsError(ConfigurationError):
    """A `CELLAR_*` setting has a value that cannot be used."""


class ParamsError(InputError):
    """A parameter is unknown or has a value that does not fit."""


class UsageError(InputError):
    """A command line asks for something that does not fit together."""


class ClusterUnavailable(StorageUnavailable):
    """No Dask scheduler answers at the configured address."""


class WorkersLost(StorageUnavailable):
    """Worker processes died again and again."""


class NotDelivered(StorageUnavailable):
    """The receiver of notifications did not take a message."""


class SiteBusy(ConflictError):
    """Another build writes the same site."""


class Interrupted(CellarError):
    """The process was asked to stop while a step ran in another thread."""

    exit_code = 130


class AlreadyServed(ConflictError):
    """Another process serves the same folder."""


class ScheduleError(InputError):
    """A file of deployments is missing or says something that cannot be done."""


class RunNotFound(NotFoundError):
    """No run of a flow answers to that id."""


class DeploymentNotFound(NotFoundError):
    """No deployment is called so."""
