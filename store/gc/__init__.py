"""Garbage collection: removing what no name, hold, lease or recent commit keeps alive."""

from store.gc.collector import GRACE, RETAIN, collect
from store.gc.summary import Amount, Summary

__all__ = ["GRACE", "RETAIN", "Amount", "Summary", "collect"]
