"""What an update works on: the head as it is, its partitions and shards, and the claim on it."""
