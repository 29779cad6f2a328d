"""What every part may stand on: values made when asked for, locks, work that happens whole, room, durations compared.

Parts, in the order of the data: lazy, locks, trees, transactions, address_space, native_call_log, statistics.
"""
