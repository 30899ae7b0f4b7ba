"""Questions that need many runs: one folder each, with its own commands, figures and readings."""
