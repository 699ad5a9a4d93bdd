"""Actions that leave the null distribution as it is: relabelings of units, re-pairings, and the layout they act on."""
