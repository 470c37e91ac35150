"""The original's driver, which served tasks; see horovod.runner._gone."""
