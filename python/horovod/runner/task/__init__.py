"""The original's tasks, which served the driver; see horovod.runner._gone."""
