"""How many rows would I need? Power over sample sizes from pilot data."""
