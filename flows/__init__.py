"""When, where and with which settings: Prefect flows over the steps of `tasks`, and the command line."""
