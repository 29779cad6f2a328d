"""What every part may stand on: values made when asked for, locks, whole or repeated work, room, durations compared.

Parts, in the order of the data: lazy, locks, trees, transactions, callbacks, address_space, native_call_log, statistics.
"""
