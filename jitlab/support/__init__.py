"""What every part may stand on: dataclasses and values made when used, locks, whole or repeated work, room, durations compared.

Parts, in the order of the data: lazy_dataclass, lazy, containers, locks, trees, transactions, callbacks, address_space,
native_call_log, direct_calls, statistics.
"""
