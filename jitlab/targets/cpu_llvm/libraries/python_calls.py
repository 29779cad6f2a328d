"""Library calls from Python, as machine code makes them: a C function makes arrays of the memory, calls, and stores what comes.

It is one function for all; what it calls, and the kinds of the arrays, stand in a record. What is raised is found again by who
runs the cluster's operations one by one, an interrupt alone is kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitlab.support.lazy import made_once
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.cpu_llvm.calls.argument_code import DIMS, NDIM, WRITEABLE
from jitlab.targets.cpu_llvm.calls.code_lines import HEAD
from jitlab.targets.cpu_llvm.calls.entry import numpy_api
from jitlab.targets.cpu_llvm.calls.entry_code import NEW_FROM_DESCR

#: In NumPy's C API: an array's elements into another one, and any object's.
COPY_INTO, COPY_OBJECT = 50, 84

#: Words of a record: what is called, how many arrays are results, how many there are, and general ones; then three for each.
CALLED, RESULTS, ARRAYS, NEW, COPY, ASSIGN, NDARRAY, EXCEPTION, NOTE, FIRST = (8 * n for n in range(10))


def record(function: Callable[..., Any], kinds: Sequence[tuple[np.dtype[Any], int]], results: int, note: int) -> np.ndarray:
    """The record of a call of this function. `note`: the address of what an interrupt is handed to, as its three parts."""
    api = numpy_api()
    words = [id(function), results, len(kinds), api[NEW_FROM_DESCR], api[COPY_INTO], api[COPY_OBJECT], id(np.ndarray)]
    words += [id(Exception), note]
    words += [word for dtype, ndim in kinds for word in (id(dtype), ndim, dtype.itemsize)]
    return np.array(words, np.int64)


@made_once
def caller() -> machine.Loaded:
    """The code of the C function `call(record, words)`; it writes 1 behind the words when it is done."""
    return machine.load(machine.object_cache().compile(_text())[0], ["call"])


def address() -> int:
    """Where that function lies."""
    return caller().address("call")


def interrupt_of(parts: Any) -> BaseException:
    """The exception that the C function took; its references come along."""
    _, value, trace = (ctypes.cast(part, ctypes.py_object).value if part else None for part in parts)
    for part in parts:
        if part:
            ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(part))
    assert isinstance(value, BaseException), f"{value!r} was raised"
    return value.with_traceback(trace)


def _text() -> str:
    def at(name: str, base: str, offset: int | str, kind: str = "ptr") -> str:
        return f"%{name}.at = getelementptr i8, ptr {base}, i64 {offset}\n  %{name} = load {kind}, ptr %{name}.at"

    return f"""
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyErr_Occurred()
declare i32 @PyErr_ExceptionMatches(ptr)
declare void @PyErr_Clear()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare i32 @memcmp(ptr, ptr, i64)

define void @call(ptr %record, ptr %words) {{
entry:
  {at("called", "%record", CALLED)}
  {at("results", "%record", RESULTS, "i64")}
  {at("count", "%record", ARRAYS, "i64")}
  {at("new", "%record", NEW)}
  {at("copy", "%record", COPY)}
  {at("assign", "%record", ASSIGN)}
  {at("ndarray", "%record", NDARRAY)}
  %first = getelementptr i8, ptr %record, i64 {FIRST}
  %arrays = alloca ptr, i64 %count
  %steps = alloca [64 x i64]
  %error = alloca [3 x ptr]
  %state = call i32 @PyGILState_Ensure()
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %made ]
  %word = phi ptr [ %words, %entry ], [ %word.next, %made ]
  %kind = phi ptr [ %first, %entry ], [ %kind.next, %made ]
  %is.all = icmp eq i64 %k, %count
  br i1 %is.all, label %run, label %one
one:
  %data = load ptr, ptr %word
  %descr = load ptr, ptr %kind
  {at("ndim", "%kind", 8, "i64")}
  {at("itemsize", "%kind", 16, "i64")}
  %dims = getelementptr i8, ptr %word, i64 8
  %strides = getelementptr i64, ptr %dims, i64 %ndim
  %word.next = getelementptr i64, ptr %strides, i64 %ndim
  %kind.next = getelementptr i8, ptr %kind, i64 24
  br label %axis
axis:
  %j = phi i64 [ 0, %one ], [ %j.next, %stride ]
  %is.last = icmp eq i64 %j, %ndim
  br i1 %is.last, label %make, label %stride
stride:
  %stride.at = getelementptr i64, ptr %strides, i64 %j
  %stride.found = load i64, ptr %stride.at
  %bytes = mul i64 %stride.found, %itemsize
  %step.at = getelementptr i64, ptr %steps, i64 %j
  store i64 %bytes, ptr %step.at
  %j.next = add i64 %j, 1
  br label %axis
make:
  call void @Py_IncRef(ptr %descr)
  %rank = trunc i64 %ndim to i32
  %array = call ptr %new(ptr %ndarray, ptr %descr, i32 %rank, ptr %dims, ptr %steps, ptr %data, i32 {WRITEABLE}, ptr null)
  %is.made = icmp ne ptr %array, null
  br i1 %is.made, label %made, label %drop
made:
  %place = getelementptr ptr, ptr %arrays, i64 %k
  store ptr %array, ptr %place
  %k.next = add i64 %k, 1
  br label %next
run:
  %given = getelementptr ptr, ptr %arrays, i64 %results
  %given.count = sub i64 %count, %results
  %result = call ptr @PyObject_Vectorcall(ptr %called, ptr %given, i64 %given.count, ptr null)
  %has.result = icmp ne ptr %result, null
  br i1 %has.result, label %store, label %drop
store:
  %r = phi i64 [ 0, %run ], [ %r.next, %stored ]
  %is.stored = icmp eq i64 %r, %results
  br i1 %is.stored, label %done, label %take
take:
  %is.single = icmp eq i64 %results, 1
  br i1 %is.single, label %have, label %item
item:
  %part = call ptr @PyTuple_GetItem(ptr %result, i64 %r)
  %has.part = icmp ne ptr %part, null
  br i1 %has.part, label %have, label %lose
have:
  %value = phi ptr [ %result, %take ], [ %part, %item ]
  %out.place = getelementptr ptr, ptr %arrays, i64 %r
  %out = load ptr, ptr %out.place
  {at("out.rank", "%out", NDIM, "i32")}
  {at("out.dims", "%out", DIMS)}
  {at("type", "%value", HEAD - 8)}
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %array.found, label %other
array.found:
  {at("own.rank", "%value", NDIM, "i32")}
  {at("own.dims", "%value", DIMS)}
  %is.rank = icmp eq i32 %own.rank, %out.rank
  br i1 %is.rank, label %extents, label %lose
extents:
  %rank.wide = zext i32 %own.rank to i64
  %rank.bytes = mul i64 %rank.wide, 8
  %differ = call i32 @memcmp(ptr %own.dims, ptr %out.dims, i64 %rank.bytes)
  %is.shape = icmp eq i32 %differ, 0
  br i1 %is.shape, label %into, label %lose
into:
  %copied = call i32 %copy(ptr %out, ptr %value)
  br label %looked
other:
  %is.number = icmp eq i32 %out.rank, 0
  br i1 %is.number, label %assigned, label %lose
assigned:
  %put = call i32 %assign(ptr %out, ptr %value)
  br label %looked
looked:
  %status = phi i32 [ %copied, %into ], [ %put, %assigned ]
  %is.fine = icmp eq i32 %status, 0
  br i1 %is.fine, label %stored, label %lose
stored:
  %r.next = add i64 %r, 1
  br label %store
done:
  store i64 1, ptr %word
  br label %lose
lose:
  call void @Py_DecRef(ptr %result)
  br label %drop
drop:
  %left = phi i64 [ %k, %make ], [ %k, %run ], [ %k, %lose ]
  br label %each
each:
  %n = phi i64 [ %left, %drop ], [ %n.next, %free ]
  %is.none = icmp eq i64 %n, 0
  br i1 %is.none, label %look, label %free
free:
  %n.next = sub i64 %n, 1
  %old.place = getelementptr ptr, ptr %arrays, i64 %n.next
  %old = load ptr, ptr %old.place
  call void @Py_DecRef(ptr %old)
  br label %each
look:
  %raised = call ptr @PyErr_Occurred()
  %is.raised = icmp ne ptr %raised, null
  br i1 %is.raised, label %which, label %leave
which:
  {at("exception", "%record", EXCEPTION)}
  %matches = call i32 @PyErr_ExceptionMatches(ptr %exception)
  %is.usual = icmp ne i32 %matches, 0
  br i1 %is.usual, label %forget, label %keep
forget:
  call void @PyErr_Clear()
  br label %leave
keep:
  %error.value = getelementptr ptr, ptr %error, i64 1
  %error.trace = getelementptr ptr, ptr %error, i64 2
  call void @PyErr_Fetch(ptr %error, ptr %error.value, ptr %error.trace)
  call void @PyErr_NormalizeException(ptr %error, ptr %error.value, ptr %error.trace)
  {at("note", "%record", NOTE)}
  call void %note(ptr %error)
  br label %leave
leave:
  call void @PyGILState_Release(i32 %state)
  ret void
}}
"""
