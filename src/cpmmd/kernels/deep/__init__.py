"""Trained kernels: networks, their Lipschitz bounds, and the kernels made of them. Needs the extra ``deep``."""
