"""Are two samples the same for a purpose? The largest differences that the data do not exclude, against a margin."""
