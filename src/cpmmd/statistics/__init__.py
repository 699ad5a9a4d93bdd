"""Statistics as functions of sums over units and of the actions on them, a file each."""
