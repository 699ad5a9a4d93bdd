"""Permutation engines: the p-value of a frozen kernel."""
