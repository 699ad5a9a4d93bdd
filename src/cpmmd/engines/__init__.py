"""Engines: how the sums that statistics need are made, from one matrix, from tiles or through landmarks."""
