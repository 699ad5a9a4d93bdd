"""Text in bytes: UTF-8 as it comes, other encodings once they are named."""

from __future__ import annotations

from cpmmd.data.files.limit import FileLimit, text_numbers
from cpmmd.data.files.options import ReadOptions
from cpmmd.data.files.source import Source
from cpmmd.errors import InputError, Setting

BOMS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def decoded(source: Source, options: ReadOptions) -> Source:
    """Return a source of text in UTF-8."""
    if options.is_utf8:
        return source
    options.limit.check(source.size, source.label)
    with source.open() as file:
        content = file.read()
    try:
        text = content.decode(options.encoding)
    except (UnicodeError, ValueError) as error:
        raise InputError(
            "{label} cannot be read as {encoding} ({reason}). Check {setting}.",
            file=source.label,
            label=source.label,
            encoding=options.encoding,
            reason=str(error)[:200],
            setting=Setting("encoding"),
        ) from error
    return Source(source.label, content=text.encode(errors="replace"))


def check_text(source: Source, limit: FileLimit) -> bytes:
    """Return the beginning of a text, refused where it is none, or too much."""
    head = source.head()
    for mark, name in BOMS.items():
        if head.startswith(mark):
            raise InputError(
                "{label} must be UTF-8 text, or say what it is. It is {name}; say {setting}.",
                file=source.label,
                label=source.label,
                name=name.upper(),
                setting=Setting("encoding", name),
            )
    if b"\x00" in head:
        raise InputError(
            "{label} is not text: it holds NUL bytes. Check the file, or say its format with {setting}.",
            file=source.label,
            label=source.label,
            setting=Setting("format"),
        )
    if b"\r" in head and b"\n" not in head:
        raise InputError(f"{source.label} has line ends of old Macs. Convert them with: tr '\\r' '\\n'")
    limit.check_numbers(text_numbers(source.size, head), source.label, besides=source.size)
    return head


def not_utf8(source: Source, error: UnicodeDecodeError) -> InputError:
    """Return the error for bytes that are no UTF-8."""
    return InputError(
        "{label} must be UTF-8 text, or say what it is. It has the byte 0x{byte:02x}, which UTF-8 does not allow there; if it "
        "was written by an old program or Excel, try {latin} or {windows}.",
        file=source.label,
        label=source.label,
        byte=error.object[error.start],
        latin=Setting("encoding", "latin-1"),
        windows=Setting("encoding", "cp1252"),
    )
