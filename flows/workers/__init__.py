"""Where the shards of a build are worked on: threads, processes, Dask workers, GPUs."""
