"""Kernels and methods in files that are checked before they are used."""
