"""When, where and with which settings: Prefect flows over the step functions of `tasks`, and the command line."""
