"""The C function in front of calls that run as Python: it compares a call with a table, and calls the Python function.

It is one function for all: what it compares with, and what it calls, stands in memory, so that nothing is compiled for it but
once on a machine. What the table does not have goes on to the way behind it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from jitlab import events
from jitlab.support import native_call_log
from jitlab.support.direct_calls import Counts
from jitlab.support.lazy import made_once
from jitlab.targets.cpu_llvm import machine
from jitlab.targets.target import LARGEST_SIZE, PlainCall

from .argument_code import DESCR, DIMS, NDIM
from .code_lines import BYTES, HEAD, ITEMS
from .entry import builtin, defined, layout_is_known

#: Words of the table, in eights of a byte: addresses of words that send a call on when they are not 0, of the counts of calls
#: under way and ended, of the types that are looked into; of the word that says whether somebody takes notes, of that of the
#: block they go to, of the clock, of what a full block is handed to and of the variable that has the cell's name; how many
#: kinds of calls follow, and where they begin.
BUSY, OFF, UNDER_WAY, NDARRAY, LIST, TUPLE, DICT, STR, INT, WATCHED, BLOCK, CLOCK, FULL, CELL, KINDS, FIRST = (
    8 * n for n in range(16)
)


def python_entry(
    function: Any, otherwise: Any, calls: Sequence[PlainCall], stops: Sequence[ctypes.c_int64], under_way: Counts,
    name: str,
) -> Any:  # fmt: skip
    """A builtin function that calls `function` with the same arguments where the call is one of `calls`, else `otherwise`; None
    where that cannot be. While somebody takes notes it notes calls of the places that are known, and `otherwise` the others."""
    if not layout_is_known():
        return None
    words = [ctypes.addressof(word) for word in (*stops, under_way)]
    words += [id(np.ndarray), id(list), id(tuple), id(dict), id(str), id(int)]
    full, cell, clock = native_call_log.full[0], events.cell_variable(), native_call_log.clock()
    words += [ctypes.addressof(native_call_log.watched), ctypes.addressof(native_call_log.head), clock[0] if clock else 0]
    words += [id(full), id(cell), len(calls)]
    for call in calls:
        values = [id(key) for key, _ in call.values] + [axes for _, axes in call.values] + [id(word) for word in call.names]
        values.append(ctypes.addressof(call.places.words) if call.places is not None and clock is not None else 0)
        words += [8 * (4 + len(values)), call.elements_bits, len(call.values) - len(call.names), len(call.names), *values]
    table = np.array(words, np.int64).tobytes()
    held = (function, otherwise, table, tuple(calls), tuple(stops), under_way, full, cell)
    return builtin(_definition(str(name)), held)


@cache
def _definition(name: str) -> int:
    """Of a plain text: a name that tells its function from others would be another one each time."""
    return defined(name.encode(), _loaded().address("call"))


@made_once
def _loaded() -> machine.Loaded:
    return machine.load(machine.object_cache().compile(_text())[0], ["call"])


def _text() -> str:
    def at(name: str, base: str, offset: int | str, kind: str = "ptr") -> str:
        return f"%{name}.at = getelementptr i8, ptr {base}, i64 {offset}\n  %{name} = load {kind}, ptr %{name}.at"

    def pointed(name: str, offset: int) -> str:
        return f"{at(f'{name}.word', '%table', offset)}\n  %{name} = load i64, ptr %{name}.word"

    places, by_pointer = native_call_log.Places, (native_call_log.clock() or (0, False))[1]
    time = "store i64 0, ptr %now.room\n  call i32 %clock(ptr %now.room)\n  %{0} = load i64, ptr %now.room"
    time = time if by_pointer else "%{0} = call i64 %clock()"
    return f"""
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare i64 @llvm.ctlz.i64(i64, i1)
declare ptr @PyEval_GetFrame()
declare i32 @PyFrame_GetLasti(ptr)
declare ptr @PyFrame_GetCode(ptr)
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare ptr @PyObject_CallNoArgs(ptr)
declare void @Py_DecRef(ptr)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)

define ptr @call(ptr %self, ptr %args, i64 %given, ptr %names) {{
entry:
  %overflow = alloca i32
  %now.room = alloca i64
  %cell.room = alloca ptr
  %error.type = alloca ptr
  %error.value = alloca ptr
  %error.trace = alloca ptr
  {at("held", "%self", ITEMS + 16)}
  %table = getelementptr i8, ptr %held, i64 {BYTES}
  {pointed("busy", BUSY)}
  {pointed("watched", WATCHED)}
  {pointed("off", OFF)}
  {at("ndarray", "%table", NDARRAY)}
  {at("list", "%table", LIST)}
  {at("tuple", "%table", TUPLE)}
  {at("dict", "%table", DICT)}
  {at("str", "%table", STR)}
  {at("int", "%table", INT)}
  {at("kinds", "%table", KINDS, "i64")}
  %first = getelementptr i8, ptr %table, i64 {FIRST}
  %any = or i64 %busy, %off
  %free = icmp eq i64 %any, 0
  br i1 %free, label %look, label %slow
look:
  %plain = icmp eq ptr %names, null
  br i1 %plain, label %begin, label %named
named:
  {at("more", "%names", HEAD, "i64")}
  br label %begin
begin:
  %named.count = phi i64 [ 0, %look ], [ %more, %named ]
  %count = add i64 %given, %named.count
  br label %sum
sum:
  %n = phi i64 [ 0, %begin ], [ %n.next, %summed ]
  %elements = phi i64 [ 0, %begin ], [ %elements.next, %summed ]
  %is.summed = icmp eq i64 %n, %count
  br i1 %is.summed, label %bits, label %value
value:
  %value.place = getelementptr ptr, ptr %args, i64 %n
  %value.found = load ptr, ptr %value.place
  {at("type", "%value.found", HEAD - 8)}
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %array, label %container
array:
  {at("axes", "%value.found", NDIM, "i32")}
  {at("dims", "%value.found", DIMS)}
  br label %axis
axis:
  %k = phi i32 [ 0, %array ], [ %k.next, %extent ]
  %size = phi i64 [ 1, %array ], [ %size.next, %extent ]
  %is.whole = icmp eq i32 %k, %axes
  br i1 %is.whole, label %summed, label %extent
extent:
  %extent.place = getelementptr i64, ptr %dims, i32 %k
  %extent.found = load i64, ptr %extent.place
  %size.next = mul i64 %size, %extent.found
  %k.next = add i32 %k, 1
  br label %axis
container:
  %is.list = icmp eq ptr %type, %list
  %is.tuple = icmp eq ptr %type, %tuple
  %is.dict = icmp eq ptr %type, %dict
  %is.either = or i1 %is.list, %is.tuple
  %is.str = icmp eq ptr %type, %str
  %is.more = or i1 %is.dict, %is.str
  %is.container = or i1 %is.either, %is.more
  br i1 %is.container, label %length, label %other
length:
  {at("length.found", "%value.found", HEAD, "i64")}
  br label %summed
other:
  %is.int = icmp eq ptr %type, %int
  br i1 %is.int, label %number, label %summed
number:
  %number.found = call i64 @PyLong_AsLongLongAndOverflow(ptr %value.found, ptr %overflow)
  %below = sub i64 %number.found, 1
  %is.size = icmp ult i64 %below, {LARGEST_SIZE}
  %own.number = select i1 %is.size, i64 %number.found, i64 0
  br label %summed
summed:
  %own = phi i64 [ %size, %axis ], [ 0, %other ], [ %length.found, %length ], [ %own.number, %number ]
  %elements.next = add i64 %elements, %own
  %n.next = add i64 %n, 1
  br label %sum
bits:
  %zeros = call i64 @llvm.ctlz.i64(i64 %elements, i1 false)
  %digits = sub i64 64, %zeros
  br label %kind
kind:
  %left = phi i64 [ %kinds, %bits ], [ %left.next, %next ]
  %row = phi ptr [ %first, %bits ], [ %row.next, %next ]
  %is.none = icmp eq i64 %left, 0
  br i1 %is.none, label %slow, label %compare
compare:
  %bytes = load i64, ptr %row
  {at("row.bits", "%row", 8, "i64")}
  {at("row.given", "%row", 16, "i64")}
  {at("row.named", "%row", 24, "i64")}
  %same.bits = icmp eq i64 %row.bits, %digits
  %same.given = icmp eq i64 %row.given, %given
  %same.named = icmp eq i64 %row.named, %named.count
  %same.count = and i1 %same.given, %same.named
  %same = and i1 %same.bits, %same.count
  %keys = getelementptr i8, ptr %row, i64 32
  %ranks = getelementptr ptr, ptr %keys, i64 %count
  %words = getelementptr ptr, ptr %ranks, i64 %count
  br i1 %same, label %each, label %next
next:
  %left.next = sub i64 %left, 1
  %row.next = getelementptr i8, ptr %row, i64 %bytes
  br label %kind
each:
  %i = phi i64 [ 0, %compare ], [ %i.next, %fits ]
  %is.last = icmp eq i64 %i, %count
  br i1 %is.last, label %each.name, label %one
one:
  %one.place = getelementptr ptr, ptr %args, i64 %i
  %one.found = load ptr, ptr %one.place
  {at("one.type", "%one.found", HEAD - 8)}
  %key.place = getelementptr ptr, ptr %keys, i64 %i
  %key = load ptr, ptr %key.place
  %one.array = icmp eq ptr %one.type, %ndarray
  br i1 %one.array, label %one.axes, label %one.other
one.axes:
  {at("one.descr", "%one.found", DESCR)}
  {at("one.rank", "%one.found", NDIM, "i32")}
  %one.wide = zext i32 %one.rank to i64
  %rank.place = getelementptr i64, ptr %ranks, i64 %i
  %rank = load i64, ptr %rank.place
  %same.descr = icmp eq ptr %one.descr, %key
  %same.rank = icmp eq i64 %one.wide, %rank
  %same.kind = and i1 %same.descr, %same.rank
  br i1 %same.kind, label %fits, label %next
one.other:
  %same.type = icmp eq ptr %one.type, %key
  br i1 %same.type, label %fits, label %next
fits:
  %i.next = add i64 %i, 1
  br label %each
each.name:
  %w = phi i64 [ 0, %each ], [ %w.next, %same.name ]
  %is.found = icmp eq i64 %w, %named.count
  br i1 %is.found, label %found, label %one.name
one.name:
  %name.offset = mul i64 %w, 8
  %name.start = add i64 %name.offset, {ITEMS}
  {at("name", "%names", "%name.start")}
  %word.place = getelementptr ptr, ptr %words, i64 %w
  %word = load ptr, ptr %word.place
  %is.same.name = icmp eq ptr %name, %word
  br i1 %is.same.name, label %same.name, label %next
same.name:
  %w.next = add i64 %w, 1
  br label %each.name
found:
  {at("function", "%self", ITEMS)}
  {at("count.at", "%table", UNDER_WAY)}
  %ended.count = getelementptr i64, ptr %count.at, i64 1
  %is.watched = icmp ne i64 %watched, 0
  br i1 %is.watched, label %watch, label %run
watch:
  %places.at = getelementptr ptr, ptr %words, i64 %named.count
  %places = load ptr, ptr %places.at
  %is.unplaced = icmp eq ptr %places, null
  br i1 %is.unplaced, label %slow, label %caller
caller:
  %frame = call ptr @PyEval_GetFrame()
  %is.frameless = icmp eq ptr %frame, null
  br i1 %is.frameless, label %slow, label %framed
framed:
  %instruction = call i32 @PyFrame_GetLasti(ptr %frame)
  %instruction.wide = sext i32 %instruction to i64
  %code = call ptr @PyFrame_GetCode(ptr %frame)
  call void @Py_DecRef(ptr %code)
  br label %spot
spot:
  %p = phi i64 [ 0, %framed ], [ %p.next, %spot.next ]
  %spot.at = mul i64 %p, {places.WORDS}
  %spot.place = getelementptr i64, ptr %places, i64 %spot.at
  {at("spot.code", "%spot.place", 0)}
  {at("spot.instruction", "%spot.place", 8, "i64")}
  {at("site", "%spot.place", 16, "i64")}
  %same.code = icmp eq ptr %spot.code, %code
  %same.instruction = icmp eq i64 %spot.instruction, %instruction.wide
  %same.spot = and i1 %same.code, %same.instruction
  br i1 %same.spot, label %note, label %spot.next
spot.next:
  %p.next = add i64 %p, 1
  %is.unknown = icmp eq i64 %p.next, {places.MOST}
  br i1 %is.unknown, label %slow, label %spot
note:
  {at("clock", "%table", CLOCK)}
  {time.format("started")}
  %noted.so.far = load i64, ptr %count.at
  %noted.more = add i64 %noted.so.far, 1
  store i64 %noted.more, ptr %count.at
  %noted.result = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %given, ptr %names)
  %noted.now = load i64, ptr %count.at
  %noted.less = sub i64 %noted.now, 1
  store i64 %noted.less, ptr %count.at
  %noted.ended = load i64, ptr %ended.count
  %noted.ended.more = add i64 %noted.ended, 1
  store i64 %noted.ended.more, ptr %ended.count
  {time.format("ended")}
  call void @PyErr_Fetch(ptr %error.type, ptr %error.value, ptr %error.trace)
  {at("variable", "%table", CELL)}
  call i32 @PyContextVar_Get(ptr %variable, ptr null, ptr %cell.room)
  %cell = load ptr, ptr %cell.room
  call void @Py_DecRef(ptr %cell)
  %cell.word = ptrtoint ptr %cell to i64
  br label %fit
fit:
  {pointed("block.word", BLOCK)}
  %block = inttoptr i64 %block.word to ptr
  %used = load i64, ptr %block
  %is.fitting = icmp slt i64 %used, {native_call_log.LINES}
  br i1 %is.fitting, label %write, label %full
full:
  {at("hand", "%table", FULL)}
  %handed = call ptr @PyObject_CallNoArgs(ptr %hand)
  %is.unhanded = icmp eq ptr %handed, null
  br i1 %is.unhanded, label %lost, label %handed.over
handed.over:
  call void @Py_DecRef(ptr %handed)
  br label %fit
lost:
  call void @Py_DecRef(ptr %noted.result)
  ret ptr null
write:
  %line = add i64 %used, 1
  %line.at = getelementptr [{native_call_log.LINE} x i64], ptr %block, i64 %line
  store i64 %site, ptr %line.at
  %cell.at = getelementptr i64, ptr %line.at, i64 {native_call_log.CELL}
  store i64 %cell.word, ptr %cell.at
  %started.at = getelementptr i64, ptr %line.at, i64 {native_call_log.START}
  store i64 %started, ptr %started.at
  %ended.at = getelementptr i64, ptr %line.at, i64 {native_call_log.END}
  store i64 %ended, ptr %ended.at
  store i64 %line, ptr %block
  {at("raised.type", "%error.type", 0)}
  {at("raised.value", "%error.value", 0)}
  {at("raised.trace", "%error.trace", 0)}
  call void @PyErr_Restore(ptr %raised.type, ptr %raised.value, ptr %raised.trace)
  ret ptr %noted.result
run:
  %so.far = load i64, ptr %count.at
  %more.now = add i64 %so.far, 1
  store i64 %more.now, ptr %count.at
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %given, ptr %names)
  %now = load i64, ptr %count.at
  %less.now = sub i64 %now, 1
  store i64 %less.now, ptr %count.at
  %ended.now = load i64, ptr %ended.count
  %ended.more = add i64 %ended.now, 1
  store i64 %ended.more, ptr %ended.count
  ret ptr %result
slow:
  {at("otherwise", "%self", ITEMS + 8)}
  %slowly = call ptr @PyObject_Vectorcall(ptr %otherwise, ptr %args, i64 %given, ptr %names)
  ret ptr %slowly
}}
"""
