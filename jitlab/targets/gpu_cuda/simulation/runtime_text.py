"""LLVM text that is the same for all simulated modules: the look at each access, and loops over threads."""

from __future__ import annotations

from .thread_records import (
    BLOCK_BIT,
    EPOCH_BIT,
    FAULTS,
    LAUNCH,
    NUMBER,
    OF_BLOCK,
    OF_WARP,
    RANGE,
    THREAD,
    WARP_BITS,
    WARP_EPOCH_BIT,
    field,
)

#: Kinds of accesses. Atomic ones are no race, and their bytes are not counted: threads look again until they find something.
READ, WRITE, ATOMIC = range(3)

#: Bytes that an access to a wrong place goes to instead, so that the processor goes on; aligned as widely as one can ask.
SINK_BYTES = 256

#: Frames of coroutines hold vectors, which want more than malloc's 16 bytes of alignment.
_OF_COROUTINES = """
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare {end} @llvm.coro.end(ptr, i1, token)
declare ptr @llvm.coro.free(token, ptr)
declare void @llvm.coro.resume(ptr)
declare void @llvm.coro.destroy(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)

define internal ptr @sim.allocate(i64 %size) noinline nounwind {{
  %more = add i64 %size, 64
  %memory = call ptr @malloc(i64 %more)
  %address = ptrtoint ptr %memory to i64
  %behind = add i64 %address, 64
  %aligned = and i64 %behind, -64
  %frame = inttoptr i64 %aligned to ptr
  %before = getelementptr i8, ptr %frame, i64 -8
  store ptr %memory, ptr %before
  ret ptr %frame
}}

define internal void @sim.release(ptr %frame) noinline nounwind {{
  %before = getelementptr i8, ptr %frame, i64 -8
  %memory = load ptr, ptr %before
  call void @free(ptr %memory)
  ret void
}}
"""

#: The memory at %p that a thread is about to use. The first wrong access of a launch is noted; where memory is outside of what
#: the launch was given, or the address is not a multiple of `align`, the thread gets the sink instead.
_ACCESS = f"""
define internal ptr @sim.access(ptr %p, i64 %size, i64 %align, i32 %how, i64 %access, ptr %thread) noinline nounwind {{
entry:
  %a = ptrtoint ptr %p to i64
  %e = add i64 %a, %size
  %launch.at = getelementptr i8, ptr %thread, i64 {field(THREAD, "launch")}
  %launch = load ptr, ptr %launch.at
  %low = sub i64 %align, 1
  %rest = and i64 %a, %low
  %is.aligned = icmp eq i64 %rest, 0
  br i1 %is.aligned, label %shared, label %wrong
shared:
  %shared.at = getelementptr i8, ptr %thread, i64 {field(THREAD, "shared")}
  %shared.start = load i64, ptr %shared.at
  %shared.bytes.at = getelementptr i8, ptr %launch, i64 {field(LAUNCH, "shared_bytes")}
  %shared.bytes = load i64, ptr %shared.bytes.at
  %shared.end = add i64 %shared.start, %shared.bytes
  %shared.shadow.at = getelementptr i8, ptr %thread, i64 {field(THREAD, "shadow")}
  %shared.shadow = load ptr, ptr %shared.shadow.at
  %shared.above = icmp uge i64 %a, %shared.start
  %shared.below = icmp ule i64 %e, %shared.end
  %is.shared = and i1 %shared.above, %shared.below
  %ranges.at = getelementptr i8, ptr %launch, i64 {field(LAUNCH, "ranges")}
  %ranges = load ptr, ptr %ranges.at
  %count.at = getelementptr i8, ptr %launch, i64 {field(LAUNCH, "count")}
  %count = load i64, ptr %count.at
  br i1 %is.shared, label %found, label %next
next:
  %i = phi i64 [ 0, %shared ], [ %j, %look ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %wrong
look:
  %j = add i64 %i, 1
  %at = mul i64 %i, {RANGE.itemsize}
  %range = getelementptr i8, ptr %ranges, i64 %at
  %start = load i64, ptr %range
  %end.at = getelementptr i8, ptr %range, i64 {field(RANGE, "end")}
  %end = load i64, ptr %end.at
  %shadow.at = getelementptr i8, ptr %range, i64 {field(RANGE, "shadow")}
  %shadow = load ptr, ptr %shadow.at
  %above = icmp uge i64 %a, %start
  %below = icmp ule i64 %e, %end
  %is.inside = and i1 %above, %below
  br i1 %is.inside, label %counted, label %next
counted:
  %how.often = icmp eq i32 %how, {ATOMIC}
  %bytes.counted = select i1 %how.often, i64 0, i64 %size
  %reads = icmp eq i32 %how, {READ}
  %bytes.offset = select i1 %reads, i64 {field(RANGE, "read")}, i64 {field(RANGE, "written")}
  %bytes.at = getelementptr i8, ptr %range, i64 %bytes.offset
  %bytes = load i64, ptr %bytes.at
  %bytes.now = add i64 %bytes, %bytes.counted
  store i64 %bytes.now, ptr %bytes.at
  br label %found
found:
  %base = phi i64 [ %shared.start, %shared ], [ %start, %counted ]
  %of = phi ptr [ %shared.shadow, %shared ], [ %shadow, %counted ]
  %nobody.looks = icmp eq ptr %of, null
  %is.atomic = icmp eq i32 %how, {ATOMIC}
  %skip = or i1 %nobody.looks, %is.atomic
  br i1 %skip, label %done, label %who
who:
  %block.at = getelementptr i8, ptr %thread, i64 {field(THREAD, "block")}
  %block = load i32, ptr %block.at
  %epoch.at = getelementptr i8, ptr %thread, i64 {field(THREAD, "epoch")}
  %epoch = load i32, ptr %epoch.at
  %number.at = getelementptr i8, ptr %thread, i64 {field(THREAD, "number")}
  %number = load i32, ptr %number.at
  %block.64 = zext i32 %block to i64
  %block.1 = add i64 %block.64, 1
  %block.up = shl i64 %block.1, {BLOCK_BIT}
  %epoch.64 = zext i32 %epoch to i64
  %epoch.up = shl i64 %epoch.64, {EPOCH_BIT}
  %number.64 = zext i32 %number to i64
  %warp.epoch.at = getelementptr i8, ptr %thread, i64 {field(THREAD, "warp_epoch")}
  %warp.epoch = load i64, ptr %warp.epoch.at
  %warp.epoch.up = shl i64 %warp.epoch, {WARP_EPOCH_BIT}
  %both = or i64 %block.up, %epoch.up
  %all = or i64 %both, %warp.epoch.up
  %me = or i64 %all, %number.64
  %is.read = icmp eq i32 %how, {READ}
  br label %byte
byte:
  %b = phi i64 [ %a, %who ], [ %b.next, %byte.done ]
  %byte.number = sub i64 %b, %base
  %word.at = shl i64 %byte.number, 4
  %writer.at = getelementptr i8, ptr %of, i64 %word.at
  %reader.at = getelementptr i8, ptr %writer.at, i64 8
  %writer = load i64, ptr %writer.at
  %reader = load i64, ptr %reader.at
  %after.write = call i1 @sim.is_other(i64 %writer, i64 %me)
  %after.read = call i1 @sim.is_other(i64 %reader, i64 %me)
  %write.after.read = select i1 %is.read, i1 false, i1 %after.read
  %is.race = or i1 %after.write, %write.after.read
  %other = select i1 %after.write, i64 %writer, i64 %reader
  br i1 %is.race, label %race, label %note
note:
  %other.block.bits = xor i64 %reader, %me
  %other.block = lshr i64 %other.block.bits, {BLOCK_BIT}
  %same.block = icmp eq i64 %other.block, 0
  %warp.bits = and i64 %other.block.bits, {WARP_BITS}
  %same.warp = icmp eq i64 %warp.bits, 0
  %several.bit = select i1 %same.warp, i64 {OF_WARP}, i64 {OF_BLOCK}
  %several.here = or i64 %me, %several.bit
  %several = select i1 %same.block, i64 %several.here, i64 -1
  %readers = select i1 %after.read, i64 %several, i64 %me
  %place = select i1 %is.read, ptr %reader.at, ptr %writer.at
  %word = select i1 %is.read, i64 %readers, i64 %me
  store i64 %word, ptr %place
  br label %byte.done
byte.done:
  %b.next = add i64 %b, 1
  %again = icmp ult i64 %b.next, %e
  br i1 %again, label %byte, label %done
race:
  call void @sim.fault(ptr %launch, i64 {FAULTS.index("race")}, i64 %access, i64 %a, ptr %thread, i64 %other)
  br label %done
done:
  ret ptr %p
wrong:
  %kind = phi i64 [ {FAULTS.index("misaligned")}, %entry ], [ {FAULTS.index("outside")}, %next ]
  call void @sim.fault(ptr %launch, i64 %kind, i64 %access, i64 %a, ptr %thread, i64 0)
  %sink.at = getelementptr i8, ptr %launch, i64 {field(LAUNCH, "sink")}
  %sink = load ptr, ptr %sink.at
  ret ptr %sink
}}

define internal i1 @sim.is_other(i64 %word, i64 %me) alwaysinline {{
  %bits = xor i64 %word, %me
  %somebody = icmp ne i64 %word, 0
  %block.bits = lshr i64 %bits, {BLOCK_BIT}
  %other.block = icmp ne i64 %block.bits, 0
  %epoch.bits = lshr i64 %bits, {EPOCH_BIT}
  %same.epoch = icmp eq i64 %epoch.bits, 0
  %number.bits = and i64 %bits, {NUMBER}
  %other.number = icmp ne i64 %number.bits, 0
  %warp.bits = and i64 %bits, {WARP_BITS}
  %other.warp = icmp ne i64 %warp.bits, 0
  %warp.epoch.bits = lshr i64 %bits, {WARP_EPOCH_BIT}
  %same.warp.epoch = icmp eq i64 %warp.epoch.bits, 0
  %not.ordered = or i1 %other.warp, %same.warp.epoch
  %other.now = and i1 %same.epoch, %other.number
  %other.thread = and i1 %other.now, %not.ordered
  %unordered = or i1 %other.block, %other.thread
  %result = and i1 %somebody, %unordered
  ret i1 %result
}}

define internal void @sim.fault(ptr %launch, i64 %kind, i64 %access, i64 %address, ptr %thread, i64 %other) noinline {{
  %kind.at = getelementptr i8, ptr %launch, i64 {field(LAUNCH, "kind")}
  %before = load i64, ptr %kind.at
  %is.first = icmp eq i64 %before, 0
  br i1 %is.first, label %first, label %done
first:
  store i64 %kind, ptr %kind.at
  %access.at = getelementptr i8, ptr %launch, i64 {field(LAUNCH, "access")}
  store i64 %access, ptr %access.at
  %address.at = getelementptr i8, ptr %launch, i64 {field(LAUNCH, "address")}
  store i64 %address, ptr %address.at
  %thread.at = getelementptr i8, ptr %launch, i64 {field(LAUNCH, "thread")}
  store ptr %thread, ptr %thread.at
  %other.at = getelementptr i8, ptr %launch, i64 {field(LAUNCH, "other")}
  store i64 %other, ptr %other.at
  br label %done
done:
  ret void
}}
"""

_EACH = """
define void @{name}({parameters}, ptr %order, i64 %count, ptr %handles) {{
entry:
{before}  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %one ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %done
one:
  %j = add i64 %i, 1
  %number.at = getelementptr i64, ptr %order, i64 %i
  %number = load i64, ptr %number.at
  %handle.at = getelementptr ptr, ptr %handles, i64 %number
{body}  br label %next
done:
  ret void
}}
"""

#: What a waiting thread is told: to go on, or that nobody waits for it any more.
RESUME, DESTROY = "sim.resume", "sim.destroy"


def _told(name: str, function: str) -> str:
    body = f"  %handle = load ptr, ptr %handle.at\n  call void @{function}(ptr %handle)\n"
    return _EACH.format(name=name, parameters="ptr %unused", before="", body=body)


def start_text(kernel: str, types: list[str], waits: bool) -> str:
    """The function that starts threads of a kernel, in an order: `start(parameters, threads, order, count, handles)`, where
    `parameters` are addresses of their bytes. Threads of a kernel that never waits have ended then."""
    before = given = ""
    for number, type in enumerate(types):
        before += f"  %at{number} = getelementptr ptr, ptr %parameters, i64 {number}\n"
        before += f"  %from{number} = load ptr, ptr %at{number}\n  %p{number} = load {type}, ptr %from{number}, align 1\n"
        given += f"{type} %p{number}, "
    body = f"  %thread.at = mul i64 %number, {THREAD.itemsize}\n  %thread = getelementptr i8, ptr %threads, i64 %thread.at\n"
    if waits:
        body += f"  %handle = call ptr @{kernel}({given}ptr %thread)\n  store ptr %handle, ptr %handle.at\n"
    else:
        body += f"  call void @{kernel}({given}ptr %thread)\n"
    return _EACH.format(name=start_name(kernel), parameters="ptr %parameters, ptr %threads", before=before, body=body)


def start_name(kernel: str) -> str:
    """What `start_text` calls its function."""
    return f"sim.start.{kernel}"


def runtime_text(llvm_version: int) -> str:
    """All of it but the starts."""
    coroutines = _OF_COROUTINES.format(end=end_type(llvm_version))
    return coroutines + _ACCESS + _told(RESUME, "llvm.coro.resume") + _told(DESTROY, "llvm.coro.destroy")


def end_type(llvm_version: int) -> str:
    """What LLVM's mark of a coroutine's end returns."""
    return "void" if llvm_version >= 22 else "i1"
