"""How many times as fast as NumPy a cell ran: rounds in turns, as a factor with its interval."""

from __future__ import annotations

from statistics import median_low
from typing import Any

from jitlab import events
from jitlab.api.check.load import BUSY
from jitlab.messages import Message, units
from jitlab.support.statistics import FEWEST, difference

#: The interval that is shown covers the factor in so many of 100 comparisons; of so few rounds a narrower one covers less.
LEVEL = 0.98
#: An interval no wider than this, as a share of the factor, is "about" one number.
NARROW = 0.15
#: Less than this is no difference: two runs of the same work differ by it.
LEAST = 0.02
#: An interval that is wider than this and includes 1 does not say that there is no difference.
UNSURE = 1.0


def speed(measured: events.Compared | events.ComparedBefore) -> dict[str, Any]:
    """The factor (NumPy's time / ours) with its interval, in words and as numbers; of fewer than three rounds no interval."""
    compared = measured.compared if isinstance(measured, events.ComparedBefore) else measured
    numpy, ours = ([max(ns, 1) / 1e9 for ns in side] for side in (compared.numpy_ns, compared.compiled_ns))
    result: dict[str, Any] = {"rounds": len(ours)}
    if compared.is_ended:
        result["ratio"] = result["low"] = ratio = numpy[0] / median_low(ours)
        said = Message("speed.at_least", {"ratio": times(ratio)}) if ratio > 1 else Message("speed.unsure")
    elif len(ours) >= FEWEST:
        found = difference(ours, numpy, paired=True, level=LEVEL)
        result |= {"ratio": found.ratio, "low": found.low, "high": found.high}
        said = _in_words(found.ratio, found.low, found.high, busy=(compared.others or 0.0) >= BUSY)
    else:
        result["ratio"] = ratio = median_low(numpy) / median_low(ours)  # of one round or two
        said = _factor("once", "once_slower", ratio)
    result |= {"code": said.name, "args": said.args, "text": str(said)}
    notes = [Message("speed.ended", {"seconds": numpy[0]})] if compared.is_ended else []
    notes += _of_threads(compared)
    if isinstance(measured, events.ComparedBefore):
        notes.append(Message("speed.before", {"at": measured.at}))
    if compared.others is not None:
        result["others"] = round(compared.others, 3)
    if compared.others is not None and compared.others >= BUSY:
        code = "speed.busy_again" if said.name.endswith("unsure_busy") else "speed.busy"
        notes.append(Message(code, {"share": compared.others}))
    if notes:
        result["note"] = "; ".join(map(str, notes))
    return result


def _of_threads(compared: events.Compared) -> list[Message]:
    """Which clock it was, where several threads worked, or would have."""
    if compared.by_clock:
        threads = compared.blas_threads
        return [Message("speed.blas_clock", {"threads": threads}) if threads > 1 else Message("speed.clock")]
    return [Message("speed.blas_one")] if compared.blas_threads == 1 else []


def seconds_of(compared: events.Compared) -> tuple[float, float | None]:
    """Of the median rounds: compiled, by NumPy; None of a run that was ended."""
    numpy = None if compared.is_ended else median_low(compared.numpy_ns) / 1e9
    return median_low(compared.compiled_ns) / 1e9, numpy


def _in_words(ratio: float, low: float, high: float, *, busy: bool) -> Message:
    if low <= 1 <= high and high - low > UNSURE:
        return Message("speed.unsure_busy" if busy else "speed.unsure")
    if low <= 1 <= high or abs(ratio - 1) < LEAST:
        return Message("speed.same")
    if (high - low) / ratio <= NARROW:
        return _factor("about", "about_slower", ratio)
    ends = (low, high) if low > 1 else (1 / high, 1 / low)
    return Message("speed.between" if low > 1 else "speed.between_slower", {"low": times(ends[0]), "high": times(ends[1])})


def _factor(faster: str, slower: str, ratio: float) -> Message:
    return Message(f"speed.{faster if ratio >= 1 else slower}", {"ratio": times(max(ratio, 1 / ratio))})


def times(factor: float) -> str:
    """1.034 -> "1.03", 4.71 -> "4.7", 52.3 -> "52": no more digits than a measurement has."""
    return units.fixed(factor, 2 if factor < 1.095 else 1 if factor < 9.95 else 0)
