"""The words of a report, where they are read: numbers with their units, and the text of each code (`table.json`, which the
panel reads, too).

Parts, in the order of the data: message, units, escape.
"""

from .message import Message, by_contract, capital, codes, plain, text

__all__ = ["Message", "by_contract", "capital", "codes", "plain", "text"]
