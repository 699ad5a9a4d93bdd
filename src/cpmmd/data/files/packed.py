"""Compressed text: gzip and zstandard, unpacked within the limit for a file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from cpmmd.core.installation import missing_extra
from cpmmd.core.text import bytes_in_words
from cpmmd.data.files.source import FileLimit, Source
from cpmmd.errors import InputError, Setting

CHUNK = 1 << 20
PIECE = 1 << 12  # of zstandard: no four bytes make more than 128 kB, so a piece unpacks to 128 MB at most
GZIP, ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
SUFFIXES = (".gz", ".zst", ".zstd")


def is_packed(head: bytes) -> bool:
    """Whether bytes begin as compressed ones do."""
    return head.startswith((GZIP, ZSTANDARD))


def unpack(source: Source, limit: FileLimit) -> bytes:
    """Return what a compressed source holds."""
    what, pieces = ("gzip", _gzip_pieces) if source.head().startswith(GZIP) else ("zstandard", _zstandard_pieces)
    try:
        with source.open() as file:
            return drain(pieces(file), f"{source.label}, unpacked,", limit)
    except (EOFError, zlib.error, OSError) as error:
        raise InputError(f"{source.label} is not a whole {what} file ({reason(error)}). Copy or download it again.") from error


def unpacked_head(source: Source, size: int) -> bytes:
    """Return the beginning of what a compressed source holds; empty where it is damaged."""
    pieces = _gzip_pieces if source.head().startswith(GZIP) else _zstandard_pieces
    try:
        with source.open() as file:
            return next(pieces(file), b"")[:size]
    except (EOFError, zlib.error, OSError):
        return b""


def drain(pieces: Iterator[bytes], label: str, limit: FileLimit) -> bytes:
    """Return all pieces in one, refused as soon as they are too much."""
    kept: list[bytes] = []
    size = 0
    for piece in pieces:
        kept.append(piece)
        size += len(piece)
        if size > limit.bytes:
            raise InputError(
                "{label} holds more than the limit for a file, {limit}. Draw some rows at random first, or raise the limit with "
                "{setting}.",
                file=label,
                label=label,
                limit=bytes_in_words(limit.bytes),
                setting=Setting("file_limit"),
            )
    return b"".join(kept)


def in_chunks(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield what there is to read, a chunk at a time."""
    while chunk := read(CHUNK):
        yield chunk


def _gzip_pieces(file: BinaryIO) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as unpacked:
        yield from in_chunks(unpacked.read)


def _zstandard_pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yield the frames' contents; a file that ends within a frame is damaged, which a plain stream would not say."""
    zstandard = _zstandard()
    frame, held = None, b""
    try:
        while held := held or file.read(PIECE):
            if frame is None:
                frame = zstandard.ZstdDecompressor().decompressobj()
            if piece := frame.decompress(held):
                yield piece
            held = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from error
    if frame is not None:
        raise EOFError("it ends within a frame")


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise missing_extra("Reading .zst files", "zstandard", "files") from error
    return zstandard


def reason(error: Exception) -> str:
    """Return what an error of the system says, in lower case."""
    return (getattr(error, "strerror", None) or str(error)).lower()
