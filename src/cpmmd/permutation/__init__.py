"""Statistics of kernels under relabelings, and the exact p-values that follow."""
