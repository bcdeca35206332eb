"""Errors of the orchestration in `flows/`."""

from store.errors import ConfigurationError, InputError, StorageUnavailable


class PrefectServerError(StorageUnavailable):
    """No Prefect API answers, configured or embedded."""


class PinError(InputError):
    """A pin file is missing, damaged, or of another stage."""


class SettingsError(ConfigurationError):
    """A `CELLAR_*` setting has a value that cannot be used."""
