"""What the sections of the experiments have in common: runs, measures per seed, the report."""
