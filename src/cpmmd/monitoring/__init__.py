"""A reference and batch after batch: the detector, what it says of a batch, and the history it is kept in."""
