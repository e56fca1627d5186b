"""Records of runs, their statistics, and the figures, tables and report made of them."""
