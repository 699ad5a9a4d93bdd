"""Base kernels and the families H of feature maps that may be chosen."""
