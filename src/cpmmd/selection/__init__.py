"""Which member of a family: criteria, their calibration, the search, and what the choice certifies."""
