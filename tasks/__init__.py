"""What is computed: pure functions and modules over arrays, one room per noun; `step.py` is a room's door."""

import os

# Read by OpenMP when torch loads it. Threads that spin while they wait take the cores from whatever else
# runs: beside another busy process on two cores, a codec update took 1.25 s instead of 0.10 s. A choice that
# the user made stands.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
