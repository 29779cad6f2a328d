"""An interrupt, or an exception, at the n-th event of this thread: each call, return, call of a C function and return from one.

A profile function of machine code counts, so that a first call of a hundred thousand events takes as long as without it. At the
n-th it asks for the interrupt as a signal does (the handler runs where Python looks for signals next), or raises an exception
in the place of the next call, as where there is no memory or no stack for it.
"""

import ctypes
from contextlib import contextmanager
from functools import cache

TEXT = """
@seen = global i64 0
@wanted = global i64 0
@raised = global ptr null
declare void @PyErr_SetInterrupt()
declare void @PyErr_SetNone(ptr)
define i32 @profile(ptr %self, ptr %frame, i32 %what, ptr %argument) {
  %before = load i64, ptr @seen
  %now = add i64 %before, 1
  store i64 %now, ptr @seen
  %wanted = load i64, ptr @wanted
  %is_it = icmp uge i64 %now, %wanted
  %is_armed = icmp ne i64 %wanted, 0
  %is_hit = and i1 %is_it, %is_armed
  br i1 %is_hit, label %hit, label %on
hit:
  %kind = load ptr, ptr @raised
  %is_signal = icmp eq ptr %kind, null
  %is_python = icmp eq i32 %what, 0
  %is_c = icmp eq i32 %what, 4
  %is_call = or i1 %is_python, %is_c
  %is_now = or i1 %is_signal, %is_call
  br i1 %is_now, label %fire, label %on
fire:
  store i64 0, ptr @wanted
  br i1 %is_signal, label %signal, label %error
signal:
  call void @PyErr_SetInterrupt()
  ret i32 0
error:
  call void @PyErr_SetNone(ptr %kind)
  ret i32 -1
on:
  ret i32 0
}
"""


class Counter:
    """The profile function and the words it counts with."""

    def __init__(self):
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
        self._jit = llvm.create_lljit_compiler(machine)
        names = ("profile", "seen", "wanted", "raised")
        library = llvm.JITLibraryBuilder().add_ir(TEXT).add_current_process()
        for name in names:
            library = library.export_symbol(name)
        self._tracker = library.link(self._jit, "faults")
        self.profile, *places = (self._tracker[name] for name in names)
        self.seen, self.wanted, self.raised = map(ctypes.c_int64.from_address, places)


@cache
def counter():
    return Counter()


@contextmanager
def at_event(number, error=None):
    """Inside, the `number`-th event brings an interrupt, or `error` (a class). 0: none. Gives the counter, whose `seen` says
    afterwards how many events there were."""
    known = counter()
    known.seen.value, known.wanted.value = 0, number
    known.raised.value = 0 if error is None else id(error)
    install = ctypes.pythonapi.PyEval_SetProfile
    install.argtypes, install.restype = [ctypes.c_void_p, ctypes.c_void_p], None
    install(known.profile, None)
    try:
        yield known
    finally:
        install(None, None)
