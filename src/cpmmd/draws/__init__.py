"""Actions under which the null hypothesis is exchangeable: permutations of labels, re-pairings, and the layout they act on."""
