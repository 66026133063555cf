"""Who drew a PNG, written into it."""

from __future__ import annotations

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEADER_END = len(SIGNATURE) + 25
"""The header chunk comes first and always has thirteen bytes of data."""


def stamped(data: bytes, stamp: str) -> bytes:
    """`data` with a `Software` text chunk behind its header; anything that is no PNG comes back as it is.

    Source: PNG specification, third edition, 11.3.3.3 tEXt.
    """
    if not data.startswith(SIGNATURE):
        return data
    body = b"tEXt" + b"Software\0" + stamp.encode("latin-1", "replace")
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return data[:HEADER_END] + chunk + data[HEADER_END:]
