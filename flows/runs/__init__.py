"""Runs of flows as people look at them: lists, details, and what a run notes of itself."""
