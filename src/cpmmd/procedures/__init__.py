"""Procedures: a whole test, from samples to result."""
