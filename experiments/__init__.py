"""Every table and figure of the CP-MMD paper, run again: ``python -m experiments list``."""
