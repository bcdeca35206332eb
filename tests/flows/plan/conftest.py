"""A tiny host in a store of its own."""

from tests.hosted import host, host_folder, store  # noqa: F401
