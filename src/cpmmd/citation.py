"""What to cite: the BibTeX of whatever method, kernel, result or data set was used."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

from cpmmd.errors import unknown_name

PAPER, MMD = "ni2026kernel", "gretton2012kernel"
# Types are named, not imported: citing a deep kernel must not import torch.
BY_TYPE: dict[str, tuple[str, ...]] = {
    "FullSampleTest": (PAPER, "domingo2025cheap"),
    "SplitTest": (PAPER,),
    "MedianTest": (MMD,),
    "MMDAgg": ("schrab2023mmd",),
    "MMDFuse": ("biggs2023mmdfuse",),
    "ComplexityPenalized": (PAPER,),
    "Ratio": ("sutherland2017generative", "liu2020learning"),
    "Plain": (MMD,),
    "Deep": ("liu2020learning", "bartlett2017spectrally"),
    "DeepKernel": ("liu2020learning", "bartlett2017spectrally"),
    "Mixture": ("liu2020learning",),
    "MixtureKernel": ("liu2020learning",),
    "Polynomial": (PAPER,),
    "Bandwidth": (MMD,),
    "Manhattan": (MMD,),
    "Radius": (MMD,),
    "ManyResults": ("benjamini1995controlling",),
    "DriftDetector": (PAPER,),
}
BY_NAME: dict[str, tuple[str, ...]] = {
    "paper": (PAPER,),
    "mmd": (MMD,),
    "binned permutations": ("domingo2025cheap",),
    "several splits": ("vovk2020combining", "meinshausen2009pvalues"),
    "higgs": ("baldi2014searching",),
    "tep": ("downs1993plant",),
    "mnist": ("lecun1998gradient",),
    "cifar10": ("krizhevsky2009learning",),
    "cifar10.1": ("recht2019imagenet",),
}


def cite(thing: Any = None) -> str:
    """Give the BibTeX of a method, kernel, criterion, result or data set; of the package itself without one.

    Parameters
    ----------
    thing
        A method's name (``"mmdagg"``), an object of this package, or one of ``"paper"``, ``"mmd"``, ``"binned permutations"``,
        ``"several splits"``, ``"higgs"``, ``"tep"``, ``"mnist"``, ``"cifar10"``, ``"cifar10.1"``.

    Examples
    --------
    >>> print(cite("mmdfuse").splitlines()[0])
    @inproceedings{biggs2023mmdfuse,
    """
    return "\n\n".join(entries()[key] for key in dict.fromkeys(_keys(thing)))


def _keys(thing: Any) -> tuple[str, ...]:
    if thing is None:
        return ("cpmmd", PAPER)
    if isinstance(thing, str):
        return _keys_of_name(thing)
    parts = [getattr(thing, name, None) for name in ("kernel", "criterion", "family")]
    of_parts = [key for part in parts if part is not None for key in BY_TYPE.get(type(part).__name__, ())]
    kind = type(thing).__name__
    if kind == "TestResult":
        return (*_keys_of_result(thing), *of_parts)
    if kind in BY_TYPE:
        return (*BY_TYPE[kind], *of_parts)
    if of_parts:
        return tuple(of_parts)
    raise unknown_name("thing to cite, of type", kind, BY_TYPE)


def _keys_of_name(name: str) -> tuple[str, ...]:
    from cpmmd.api import METHODS

    if name in BY_NAME:
        return BY_NAME[name]
    if name not in METHODS:
        raise unknown_name("method or data set", name, [*METHODS, *BY_NAME])
    criterion = {"liu": BY_TYPE["Ratio"], "plain": (PAPER,)}.get(name.split("-")[0], (PAPER,))
    special = {"median": (MMD,), "mmdagg": BY_TYPE["MMDAgg"], "mmdfuse": BY_TYPE["MMDFuse"], "cp-full": BY_TYPE["FullSampleTest"]}
    return special.get(name, criterion)


def _keys_of_result(result: Any) -> tuple[str, ...]:
    from cpmmd.api import METHODS

    named = _keys_of_name(result.method) if result.method in METHODS else ()
    binned = ("domingo2025cheap",) if result.details.get("engine", {}).get("name") == "binned" else ()
    several = BY_NAME["several splits"] if "splits" in result.details else ()
    return (*named, *binned, *several)


@cache
def entries() -> dict[str, str]:
    """Give the BibTeX entries by key."""
    text = resources.files("cpmmd").joinpath("citations.bib").read_text(encoding="utf-8")
    found = re.findall(r"^@\w+\{([^,]+),\n.*?^\}", text, flags=re.DOTALL | re.MULTILINE)
    blocks = re.findall(r"^@\w+\{.*?^\}", text, flags=re.DOTALL | re.MULTILINE)
    return dict(zip(found, blocks, strict=True))
