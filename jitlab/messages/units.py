"""Numbers as people read them: bytes, times, counts and ratios, each with its unit.

The panel has the same in extension/src/core/base/format.ts; both are tested on extension/test/fixtures/units.json.
"""

from __future__ import annotations

import re
from functools import cache
from math import ceil
from typing import Any

from jitlab.support.later import Later

decimal = Later("decimal")


def fixed(value: float, digits: int) -> str:
    """(0.125, 2) -> "0.13". As JavaScript's toFixed: what lies half-way is rounded up, where Python takes the even digit."""
    return f"{decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-digits), context=_exact()):f}"


@cache
def _exact() -> Any:
    return decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP)


def size(count: float) -> str:
    """2_400_000 -> "2.4 MB"."""
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= 0.9995 * least:
            return f"{fixed(count / least, 0 if count >= 99.95 * least else 1)} {unit}"
    return f"{fixed(count, 0)} B"


def duration(seconds: float | None) -> str:
    """0.0098 -> "9.8 ms"; "" when it is not known."""
    if seconds is None:
        return ""
    if seconds >= 0.9995:
        return f"{fixed(seconds, 0 if seconds >= 99.95 else 1 if seconds >= 9.995 else 2)} s"
    ms = seconds * 1e3
    if ms >= 0.0995:
        return f"{fixed(ms, 0 if ms >= 99.95 else 1 if ms >= 0.995 else 2)} ms"
    us = seconds * 1e6
    if 0 < us < 0.05:
        return "< 0.1 µs"
    return f"{fixed(us, 0 if us >= 9.95 or us == 0 else 1)} µs"


def short_duration(seconds: float) -> str:
    """As `duration`, below a microsecond in nanoseconds: what one loop takes may be that little."""
    return duration(seconds) if seconds >= 1e-6 else f"{fixed(seconds * 1e9, 0)} ns"


def percent(part: float) -> str:
    """0.934 -> "93 %"."""
    return "< 1 %" if 0 < part < 0.01 else f"{fixed(part * 100, 0)} %"


def figure(value: float | None, digits: int = 3) -> str:
    """0.000012345 -> "1.23e-05"; "" of what is not finite or not known. Of errors, whose size is all there is to say."""
    return "" if value is None else f"{value:.{digits}g}"


def ulps(count: float) -> str:
    """5.01 -> "5.1 ULP"; rounded up, so that what it says is never less than what is."""
    if count < 10:
        return f"{ceil(count * 10 - 1e-9) / 10:g} ULP"
    return f"{ceil(count - 1e-9):,} ULP" if count < 1e7 else f"{re.sub(r'(?<=e.)0+', '', f'{count:.1e}')} ULP"


def amount(number: int) -> str:
    """940_000_000 -> "940 M"; of operations."""
    for factor, prefix in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if number >= factor:
            return f"{fixed(number / factor, 0 if number >= 99.95 * factor else 1)} {prefix}"
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """(1, "kernel") -> "1 kernel"; (2000, "kernel") -> "2,000 kernels"."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """ "kernels", "passes", "copies"."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith("s") else "s")
