"""The questions that can be asked, one file each."""

from __future__ import annotations
