"""User text made harmless wherever it is printed."""

from __future__ import annotations

import unicodedata


def clean(text: object) -> str:
    """User text that can't act: control characters, direction marks and lone surrogates become visible escapes."""
    plain = str(text)
    if plain.isascii() and plain.isprintable():
        return plain
    return "".join(c.encode("unicode_escape").decode() if _acts(c) else c for c in plain)


def clean_lines(text: object) -> str:
    """The same of a text that has lines, with the tabs in them."""
    return "\n".join("\t".join(map(clean, line.split("\t"))) for line in str(text).split("\n"))


def _acts(c: str) -> bool:
    if c == "\u200d":  # joins emoji
        return False
    return unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") or ord(c) & 0xFFFE == 0xFFFE
