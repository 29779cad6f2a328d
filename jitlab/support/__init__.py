"""What every part may stand on: classes, values, modules made when used, locks, whole or repeated work, room, statistics.

Parts, in the order of the data: constructors, lazy_dataclass, lazy, containers, locks, address_space, later, trees,
transactions, callbacks, native_call_log, direct_calls, statistics, limits.
"""
