"""Every family with one bandwidth, by name: what files and recipes may speak of."""

from __future__ import annotations

from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.manhattan import Manhattan
from cpmmd.kernels.polynomial import Polynomial
from cpmmd.kernels.radius import Radius
from cpmmd.kernels.scaled import ScaleFamily

FAMILIES: dict[str, type[ScaleFamily]] = {kind.__name__: kind for kind in (Bandwidth, Manhattan, Polynomial, Radius)}
