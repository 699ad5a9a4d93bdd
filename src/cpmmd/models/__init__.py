"""Models of rows: densities up to a constant, from functions, scipy, scikit-learn, torch, or a name."""
