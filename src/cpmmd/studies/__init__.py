"""Many tests: segments with adjusted p-values, power studies that survive a kill, sample sizes from a pilot."""
