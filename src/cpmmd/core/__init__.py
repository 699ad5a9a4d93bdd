"""What everything stands on: arrays, checks, text, threads, seeds, whole files."""
