"""A Prefect API on this machine: who serves it, what runs when, and what becomes of runs that broke off."""
