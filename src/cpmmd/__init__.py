"""cpmmd: are these two samples from the same distribution?

Public names are listed once, in ``__init__.pyi``, and imported when first asked for, so that the command line can print its help
without numpy.
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
