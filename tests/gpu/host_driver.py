"""A driver whose device memory is memory of this process that only it reads; it runs no kernels."""

import ctypes
import threading

import numpy as np

from jitlab.targets.gpu_cuda.gpu_driver import Driver


class HostDriver(Driver):
    """`blocks`: address -> the memory that is not free; `copies`: (direction, bytes)."""

    dlpack_device = (1, 0)  # so that NumPy reads what it is handed
    key, name, processors, memory_bytes = "host", "a device on the host", 4, 1 << 30

    def __init__(self):
        self.blocks, self.copies, self.waits = {}, [], 0
        self.lock = threading.Lock()

    def allocate(self, nbytes):
        assert nbytes >= 1
        raw = np.full(nbytes + 256, 0xA5, np.uint8)
        address = -(-raw.ctypes.data // 256) * 256
        with self.lock:
            self.blocks[address] = raw
        return address

    def free(self, address):
        with self.lock:
            del self.blocks[address]

    def _moved(self, way, target, source, nbytes):
        self.copies.append((way, nbytes))
        ctypes.memmove(target, source, nbytes)

    def copy_in(self, address, array):
        assert array.flags.c_contiguous
        self._moved("in", address, array.ctypes.data, array.nbytes)

    def copy_out(self, array, address):
        assert array.flags.c_contiguous and array.flags.writeable
        self._moved("out", array.ctypes.data, address, array.nbytes)

    def copy_within(self, target, source, nbytes):
        self._moved("within", target, source, nbytes)

    def load(self, text, kernels):
        raise NotImplementedError

    def launch(self, function, grid, block, parameters):
        raise NotImplementedError

    def wait(self):
        self.waits += 1

    def mark(self):
        return 0

    def elapsed_ns(self, before, after):
        return 0
