"""Names of the original's driver, which served tasks; see _gone."""
