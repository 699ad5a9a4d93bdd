"""What to cite: the BibTeX of whatever method, kernel, result or data set was used."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from cpmmd import registry
from cpmmd.errors import InputError, unknown_name
from cpmmd.procedures.base import Procedure

SOFTWARE, PAPER = "cpmmd", "ni2026kernel"
TOPICS: dict[str, tuple[str, ...]] = {
    "paper": (PAPER,),
    "mmd": ("gretton2012kernel",),
    "binned permutations": ("domingo2025cheap",),
    "independence": ("gretton2005hsic", "szekely2007distance", "schrab2022efficient"),
    "several splits": ("vovk2020combining", "meinshausen2009pvalues"),
    "several samples": ("rizzo2010disco", "marcus1976closed", "ryan1960significance", "shaffer1986modified"),
    "adjusted p-values": ("benjamini1995controlling", "benjamini2001control"),
    "higgs": ("baldi2014searching",),
    "tep": ("downs1993plant",),
    "mnist": ("lecun1998gradient",),
    "cifar10": ("krizhevsky2009learning",),
    "cifar10.1": ("recht2019imagenet",),
}


def cite(thing: object = None) -> str:
    """Return the BibTeX entries of a method, kernel, criterion, result or data set; without an argument, those of the package.

    Parameters
    ----------
    thing : str or object, optional
        A method's name (``"mmdagg"``), an object of this package, or one of ``"paper"``, ``"mmd"``, ``"binned permutations"``,
        ``"independence"``, ``"several splits"``, ``"several samples"``, ``"adjusted p-values"``, ``"higgs"``, ``"tep"``,
        ``"mnist"``, ``"cifar10"``, ``"cifar10.1"``.

    Returns
    -------
    str
        BibTeX entries, each once.

    Examples
    --------
    >>> from cpmmd import cite
    >>> print(cite("mmdfuse").splitlines()[0])
    @inproceedings{biggs2023mmdfuse,
    """
    return "\n\n".join(entries()[key] for key in dict.fromkeys(citation_keys(thing)))


def citation_keys(thing: object) -> tuple[str, ...]:
    """Return the keys of what to cite for something."""
    if thing is None:
        return (SOFTWARE, PAPER)
    if isinstance(thing, str):
        methods = registry.named_methods()
        if thing not in TOPICS and thing not in methods:
            raise unknown_name("method or topic", thing, [*methods, *TOPICS])
        return TOPICS[thing] if thing in TOPICS else methods[thing].make().all_citations()
    keys = _keys_of_object(thing)
    if not keys:
        known = ", ".join(sorted(TOPICS))
        raise InputError(f"There is no reference for {thing!r}. Pass a method, kernel, criterion or result, or one of: {known}.")
    return keys


def _keys_of_object(thing: object) -> tuple[str, ...]:
    """Return the keys that an object declares, and those of its parts."""
    if isinstance(thing, Procedure):
        return thing.all_citations()
    parts = (getattr(thing, name, None) for name in ("kernel", "family", "deep"))
    of_parts = (key for part in parts if part is not None for key in _keys_of_object(part))
    return (*getattr(thing, "citations", ()), *of_parts)


@cache
def entries() -> dict[str, str]:
    """Return the BibTeX entries by key."""
    text = resources.files("cpmmd").joinpath("citations.bib").read_text(encoding="utf-8")
    found = re.finditer(r"^@\w+\{([^,]+),\n.*?^\}", text, flags=re.DOTALL | re.MULTILINE)
    return {entry[1]: entry[0] for entry in found}
