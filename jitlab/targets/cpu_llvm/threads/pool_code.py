"""The machine code of the pool: a region, which cuts a loop into pieces, and the threads that help with it.

Whoever opens a region works through its pieces alone, and takes the next one each time from a number that all share. A thread
that is awake joins it and does the same. At the end the region is closed, and waited for are those alone who have joined and
are in the midst of a piece: a thread that has no processor costs nothing. Nobody who opens a region takes a lock, but to sleep
until the last one has left; a wake that comes while a thread falls asleep is lost, and so is only its help.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitlab.targets.cpu_llvm.calls.context import ALONE, DONE, PAUSED, ContextLayout

#: Where in the pool's memory stand: the address of `region`; the threads that a region may have; what tells the threads of
#: NumPy's BLAS, or null; whether the pool has ended; a lock of who starts threads; how many there are; the number of regions so
#: far; how many sleep.
REGION, ALLOWED, BLAS, ENDED, STARTING, STARTED, OPENED, ASLEEP = 0, 8, 16, 24, 32, 40, 64, 128
#: A lock and conditions: there is a region, the last one has left. Then how a thread is told which signals it does not take,
#: those, and the threads.
LOCK, THERE_IS, HAVE_LEFT, HOW, SIGNALS, THREADS = 192, 320, 448, 576, 640, 1024
MOST_THREADS = 255
#: The regions that may be open at once, and their words.
REGIONS, REGION_BYTES, FIRST_REGION = 16, 256, 3072
GATE, FUNCTION, CONTEXT, END, PIECE, ROWS, MODE, HELPERS, NEXT, FAILED, HELPED = 0, 8, 16, 24, 32, 40, 48, 56, 64, 128, 136
BYTES = FIRST_REGION + REGIONS * REGION_BYTES

#: The gate of a region: whose it is, whether others may join, whether its owner sleeps; below, how many are inside.
OWNED, OPEN, SLEEPS, INSIDE = 1 << 40, 1 << 41, 1 << 42, (1 << 40) - 1

#: Looks at a word before a thread sleeps: who waits for a region, and who waits for the others to leave.
SPINS, PATIENCE = 1000, 4000

#: No iterations are left.
_NONE = 1 << 62

#: What a processor does while it waits, and how code reads and sets the mode of its floating-point unit.
_PROCESSORS = {
    "x86_64": (
        "declare void @llvm.x86.sse2.pause()\ndeclare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)",
        "call void @llvm.x86.sse2.pause()",
        "call void @llvm.x86.sse.stmxcsr(ptr {})",
        "call void @llvm.x86.sse.ldmxcsr(ptr {})",
    ),
    "aarch64": (
        "declare void @llvm.aarch64.hint(i32)\ndeclare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)",
        "call void @llvm.aarch64.hint(i32 1)",
        "%mode.now = call i64 @llvm.aarch64.get.fpcr()\n  store i64 %mode.now, ptr {}",
        "%mode.then = load i64, ptr {}\n  call void @llvm.aarch64.set.fpcr(i64 %mode.then)",
    ),
}
PROCESSORS = frozenset(_PROCESSORS)


def text(processor: str, counter: str) -> str:
    """The module for a processor. `counter`: the intrinsic that counts cycles."""
    declared, pause, read_mode, set_mode = _PROCESSORS[processor]
    parts = (_DECLARED, _hire(), _work(pause, set_mode), _pieces(), _region(counter, pause, read_mode), _end())
    return "\n".join((declared, f"declare i64 @{counter}()", *parts))


_DECLARED = """declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)"""


def _places(base: str, **places: int) -> str:
    return "".join(f"  %{name} = getelementptr i8, ptr %{base}, i64 {place}\n" for name, place in places.items())


def _loads(base: str, names: Sequence[tuple[str, str, int]]) -> str:
    return "".join(
        f"  %{name}.at = getelementptr i8, ptr %{base}, i64 {place}\n  %{name} = load {kind}, ptr %{name}.at\n"
        for name, kind, place in names
    )


def _hire() -> str:
    """Threads are started until there are so many; one that the system refuses is not asked for again."""
    return f"""
define internal void @hire(ptr %pool, i64 %wanted) nounwind {{
  %before = alloca [128 x i8], align 8
{_places("pool", starting=STARTING, started=STARTED, allowed=ALLOWED, threads=THREADS, signals=SIGNALS, how_at=HOW)}
  %how = load i32, ptr %how_at
  %held = cmpxchg ptr %starting, i64 0, i64 1 acquire monotonic
  %is.mine = extractvalue {{ i64, i1 }} %held, 1
  br i1 %is.mine, label %look, label %after
look:
  %count = load atomic i64, ptr %started monotonic, align 8
  %are.few = icmp slt i64 %count, %wanted
  %is.room = icmp slt i64 %count, {MOST_THREADS}
  %more = and i1 %are.few, %is.room
  br i1 %more, label %start, label %give
start:
  %thread = getelementptr i64, ptr %threads, i64 %count
  %masked = call i32 @pthread_sigmask(i32 %how, ptr %signals, ptr %before)
  %status = call i32 @pthread_create(ptr %thread, ptr null, ptr @work, ptr %pool)
  %unmasked = call i32 @pthread_sigmask(i32 %how, ptr %before, ptr null)
  %is.refused = icmp ne i32 %status, 0
  %all = add i64 %count, 1
  br i1 %is.refused, label %refused, label %runs
runs:
  store atomic i64 %all, ptr %started release, align 8
  br label %look
refused:
  store atomic i64 %all, ptr %allowed monotonic, align 8
  br label %give
give:
  store atomic i64 0, ptr %starting release, align 8
  br label %after
after:
  ret void
}}"""


def _work(pause: str, set_mode: str) -> str:
    """A thread: it joins regions that are open, and sleeps when there were none for a while. Rows of scratch are its own."""
    return f"""
define internal ptr @work(ptr %pool) nounwind {{
  %rows.at = alloca ptr
  %room.at = alloca i64
  store ptr null, ptr %rows.at
  store i64 0, ptr %room.at
{_places("pool", opened=OPENED, ended=ENDED, asleep=ASLEEP, lock=LOCK, there=THERE_IS, left=HAVE_LEFT)}
  br label %again
again:
  %seen = load atomic i64, ptr %opened seq_cst, align 8
  br label %each
each:
  %k = phi i64 [ 0, %again ], [ %k.next, %next ]
  %is.over = load atomic i64, ptr %ended acquire, align 8
  %over = icmp ne i64 %is.over, 0
  br i1 %over, label %end, label %try
try:
  %from = mul i64 %k, {REGION_BYTES}
  %offset = add i64 %from, {FIRST_REGION}
  %region = getelementptr i8, ptr %pool, i64 %offset
{_places("region", gate=GATE, helpers=HELPERS, helped=HELPED, mode=MODE)}
  %first = load atomic i64, ptr %gate monotonic, align 8
  br label %ask
ask:
  %state = phi i64 [ %first, %try ], [ %state.now, %join ]
  %open = and i64 %state, {OPEN}
  %is.open = icmp ne i64 %open, 0
  %inside = and i64 %state, {INSIDE}
  %most = load atomic i64, ptr %helpers monotonic, align 8
  %is.room = icmp slt i64 %inside, %most
  %may = and i1 %is.open, %is.room
  br i1 %may, label %join, label %next
join:
  %joined = add i64 %state, 1
  %tried = cmpxchg ptr %gate, i64 %state, i64 %joined seq_cst monotonic
  %state.now = extractvalue {{ i64, i1 }} %tried, 0
  %has.joined = extractvalue {{ i64, i1 }} %tried, 1
  br i1 %has.joined, label %inside.now, label %ask
inside.now:
{_loads("region", [("needed", "i64", ROWS)])}
  %room = load i64, ptr %room.at
  %fits = icmp sle i64 %needed, %room
  br i1 %fits, label %help, label %grow
grow:
  %old = load ptr, ptr %rows.at
  call void @free(ptr %old)
  %with.edge = add i64 %needed, 128
  %new = call ptr @malloc(i64 %with.edge)
  store ptr %new, ptr %rows.at
  %got = icmp ne ptr %new, null
  %new.room = select i1 %got, i64 %needed, i64 0
  store i64 %new.room, ptr %room.at
  br i1 %got, label %help, label %leave
help:
  {set_mode.format("%mode")}
  %raw = load ptr, ptr %rows.at
  %raw.word = ptrtoint ptr %raw to i64
  %up = add i64 %raw.word, 127
  %start = and i64 %up, -128
  %is.raw = icmp ne ptr %raw, null
  %rows.word = select i1 %is.raw, i64 %start, i64 1
  %rows = inttoptr i64 %rows.word to ptr
  %did = call i64 @pieces(ptr %region, ptr %rows, i64 -1)
  %has.done = icmp ne i64 %did, 0
  %one = zext i1 %has.done to i64
  %counted = atomicrmw add ptr %helped, i64 %one monotonic
  br label %leave
leave:
  %before = atomicrmw sub ptr %gate, i64 1 seq_cst
  %is.last = icmp eq i64 %before, {OWNED + SLEEPS + 1}
  br i1 %is.last, label %tell, label %next
tell:
  %l1 = call i32 @pthread_mutex_lock(ptr %lock)
  %l2 = call i32 @pthread_cond_broadcast(ptr %left)
  %l3 = call i32 @pthread_mutex_unlock(ptr %lock)
  br label %next
next:
  %k.next = add i64 %k, 1
  %is.rest = icmp slt i64 %k.next, {REGIONS}
  br i1 %is.rest, label %each, label %spin
spin:
  %spun = phi i64 [ 0, %next ], [ %spun.next, %rest ]
  %number = load atomic i64, ptr %opened seq_cst, align 8
  %is.same = icmp eq i64 %number, %seen
  br i1 %is.same, label %rest, label %again
rest:
  {pause}
  %spun.next = add i64 %spun, 1
  %is.short = icmp slt i64 %spun.next, {SPINS}
  br i1 %is.short, label %spin, label %lie
lie:
  %l4 = call i32 @pthread_mutex_lock(ptr %lock)
  %s1 = atomicrmw add ptr %asleep, i64 1 seq_cst
  br label %dream
dream:
  %number.then = load atomic i64, ptr %opened seq_cst, align 8
  %is.still = icmp eq i64 %number.then, %seen
  br i1 %is.still, label %wait, label %wake
wait:
  %l5 = call i32 @pthread_cond_wait(ptr %there, ptr %lock)
  br label %dream
wake:
  %s2 = atomicrmw sub ptr %asleep, i64 1 seq_cst
  %l6 = call i32 @pthread_mutex_unlock(ptr %lock)
  br label %again
end:
  %own = load ptr, ptr %rows.at
  call void @free(ptr %own)
  ret ptr null
}}"""


def _pieces() -> str:
    """Pieces of a region until none is left, or this thread has done as many as it may; how many it has done. Of those that
    fail, the first one counts: what lies before it has been taken already."""
    return f"""
define internal i64 @pieces(ptr %region, ptr %rows, i64 %most) nounwind {{
{_places("region", next=NEXT, failed=FAILED)}
{_loads("region", [("function", "ptr", FUNCTION), ("context", "ptr", CONTEXT), ("end", "i64", END), ("piece", "i64", PIECE)])}
  br label %take
take:
  %did = phi i64 [ 0, %0 ], [ %more, %on ]
  %is.enough = icmp eq i64 %did, %most
  br i1 %is.enough, label %leave, label %look
look:
  %low = atomicrmw add ptr %next, i64 %piece seq_cst
  %is.there = icmp slt i64 %low, %end
  br i1 %is.there, label %run, label %leave
run:
  %far = add i64 %low, %piece
  %is.whole = icmp slt i64 %far, %end
  %high = select i1 %is.whole, i64 %far, i64 %end
  %status = call i64 %function(ptr %context, i64 %low, i64 %high, ptr %rows)
  %is.fine = icmp eq i64 %status, {DONE}
  br i1 %is.fine, label %on, label %fail
fail:
  %place = shl i64 %low, 16
  %both = or i64 %place, %status
  %f1 = atomicrmw umin ptr %failed, i64 %both seq_cst
  %f2 = atomicrmw xchg ptr %next, i64 {_NONE} seq_cst
  br label %on
on:
  %more = add i64 %did, 1
  br label %take
leave:
  ret i64 %did
}}"""


def _region(counter: str, pause: str, read_mode: str) -> str:
    """region(pool, function, context, cut, end, began, budget): the iterations up to the end, from where the context says; what
    the code of a Program returns, or ALONE. With the budget of cycles spent no piece is begun, and the context says where to go
    on. `cut`: two words of the context, the length of a piece and the most helpers of this loop."""
    return f"""
define i64 @region(
  ptr %pool, ptr %function, ptr %context, ptr %cut, i64 %end, i64 %began, i64 %budget
) nounwind {{
  %piece = load i64, ptr %cut
  %is.cut = icmp ne i64 %piece, 0
  br i1 %is.cut, label %enter, label %alone
enter:
{_places("cut", helped=8)}{_places("context", at=8 * ContextLayout.RESUME_AT)}
{_loads("context", [("rows", "i64", 8 * ContextLayout.ROWS)])}
{_places("pool", allowed=ALLOWED, started=STARTED, opened=OPENED, asleep=ASLEEP, lock=LOCK, there=THERE_IS, left=HAVE_LEFT)}
  %set = load atomic i64, ptr %allowed monotonic, align 8
{_loads("pool", [("blas", "ptr", BLAS)])}
  %has.blas = icmp ne ptr %blas, null
  br i1 %has.blas, label %ask, label %known
ask:
  %theirs32 = call i32 %blas()
  %theirs = sext i32 %theirs32 to i64
  %are.less = icmp slt i64 %theirs, %set
  %least = select i1 %are.less, i64 %theirs, i64 %set
  br label %known
known:
  %threads = phi i64 [ %set, %enter ], [ %least, %ask ]
  %low = load i64, ptr %at
  %length = sub i64 %end, %low
  %up = add i64 %length, %piece
  %up.most = sub i64 %up, 1
  %pieces = sdiv i64 %up.most, %piece
  %are.few = icmp slt i64 %pieces, %threads
  %those = select i1 %are.few, i64 %pieces, i64 %threads
  %wanted = sub i64 %those, 1
  %some = icmp sgt i64 %wanted, 0
  br i1 %some, label %begin, label %alone
alone:
  ret i64 {ALONE}
begin:
  %have = load atomic i64, ptr %started acquire, align 8
  %is.lack = icmp slt i64 %have, %wanted
  br i1 %is.lack, label %hire, label %choose
hire:
  call void @hire(ptr %pool, i64 %wanted)
  %hired = load atomic i64, ptr %started acquire, align 8
  %is.any = icmp sgt i64 %hired, 0
  br i1 %is.any, label %choose, label %alone
choose:
  %k = phi i64 [ 0, %begin ], [ 0, %hire ], [ %k.next, %other ]
  %is.place = icmp slt i64 %k, {REGIONS}
  br i1 %is.place, label %try, label %alone
try:
  %from = mul i64 %k, {REGION_BYTES}
  %offset = add i64 %from, {FIRST_REGION}
  %region = getelementptr i8, ptr %pool, i64 %offset
{_places("region", gate=GATE, next=NEXT, failed=FAILED, helped_at=HELPED, mode=MODE)}
  %taken = cmpxchg ptr %gate, i64 0, i64 {OWNED} seq_cst monotonic
  %is.mine = extractvalue {{ i64, i1 }} %taken, 1
  br i1 %is.mine, label %fill, label %other
other:
  %k.next = add i64 %k, 1
  br label %choose
fill:
{_stores("region", FUNCTION=("ptr", "function", FUNCTION), CONTEXT=("ptr", "context", CONTEXT), END=("i64", "end", END))}
{_stores("region", PIECE=("i64", "piece", PIECE), ROWS=("i64", "rows", ROWS))}
  {read_mode.format("%mode")}
  %helpers.at = getelementptr i8, ptr %region, i64 {HELPERS}
  store atomic i64 %wanted, ptr %helpers.at monotonic, align 8
  store atomic i64 %low, ptr %next monotonic, align 8
  store atomic i64 -1, ptr %failed monotonic, align 8
  store atomic i64 0, ptr %helped_at monotonic, align 8
  store atomic i64 {OWNED + OPEN}, ptr %gate release, align 8
  %number = atomicrmw add ptr %opened, i64 1 seq_cst
  %sleeping = load atomic i64, ptr %asleep seq_cst, align 8
  %is.sleep = icmp sgt i64 %sleeping, 0
  br i1 %is.sleep, label %call, label %go
call:
  %w1 = call i32 @pthread_cond_broadcast(ptr %there)
  br label %go
go:
  %did = call i64 @pieces(ptr %region, ptr null, i64 1)
  %is.none = icmp eq i64 %did, 0
  br i1 %is.none, label %close, label %clock
clock:
  %now = call i64 @{counter}()
  %spent = sub i64 %now, %began
  %is.long = icmp ugt i64 %spent, %budget
  br i1 %is.long, label %pause, label %go
pause:
  %reached = atomicrmw xchg ptr %next, i64 {_NONE} seq_cst
  br label %close
close:
  %go.on = phi i64 [ %end, %go ], [ %reached, %pause ]
  %before = atomicrmw and ptr %gate, i64 {~OPEN} seq_cst
  br label %spin
spin:
  %spun = phi i64 [ 0, %close ], [ %spun.next, %rest ]
  %state = load atomic i64, ptr %gate acquire, align 8
  %is.empty = icmp eq i64 %state, {OWNED}
  br i1 %is.empty, label %end.now, label %rest
rest:
  {pause}
  %spun.next = add i64 %spun, 1
  %is.short = icmp slt i64 %spun.next, {PATIENCE}
  br i1 %is.short, label %spin, label %lie
lie:
  %l1 = call i32 @pthread_mutex_lock(ptr %lock)
  %s1 = atomicrmw or ptr %gate, i64 {SLEEPS} seq_cst
  br label %dream
dream:
  %state.then = load atomic i64, ptr %gate acquire, align 8
  %are.gone = icmp eq i64 %state.then, {OWNED + SLEEPS}
  br i1 %are.gone, label %wake, label %wait
wait:
  %l2 = call i32 @pthread_cond_wait(ptr %left, ptr %lock)
  br label %dream
wake:
  %l3 = call i32 @pthread_mutex_unlock(ptr %lock)
  br label %end.now
end.now:
  %failure = load atomic i64, ptr %failed acquire, align 8
  %count = load atomic i64, ptr %helped_at acquire, align 8
  store atomic i64 0, ptr %gate release, align 8
  %most = load i64, ptr %helped
  %is.more = icmp sgt i64 %count, %most
  %now.most = select i1 %is.more, i64 %count, i64 %most
  store i64 %now.most, ptr %helped
  %has.failed = icmp ne i64 %failure, -1
  br i1 %has.failed, label %fails, label %fine
fails:
  %status = and i64 %failure, 65535
  ret i64 %status
fine:
  %is.rest = icmp slt i64 %go.on, %end
  br i1 %is.rest, label %later, label %whole
later:
  store i64 %go.on, ptr %at
  ret i64 {PAUSED}
whole:
  ret i64 {DONE}
}}"""


def _end() -> str:
    """end(pool): no thread is started any more, and those that there are end; how many they are, to be waited for."""
    return f"""
define i64 @end(ptr %pool) nounwind {{
{_places("pool", starting=STARTING, started=STARTED, ended=ENDED, opened=OPENED, lock=LOCK, there=THERE_IS)}
  store atomic i64 1, ptr %ended seq_cst, align 8
  br label %try
try:
  %held = cmpxchg ptr %starting, i64 0, i64 1 seq_cst monotonic
  %is.mine = extractvalue {{ i64, i1 }} %held, 1
  br i1 %is.mine, label %tell, label %try
tell:
  %number = atomicrmw add ptr %opened, i64 1 seq_cst
  %l1 = call i32 @pthread_mutex_lock(ptr %lock)
  %l2 = call i32 @pthread_cond_broadcast(ptr %there)
  %l3 = call i32 @pthread_mutex_unlock(ptr %lock)
  %count = load atomic i64, ptr %started acquire, align 8
  ret i64 %count
}}"""


def _stores(base: str, **values: tuple[str, str, int]) -> str:
    return "".join(
        f"  %{name}.to = getelementptr i8, ptr %{base}, i64 {place}\n  store {kind} %{value}, ptr %{name}.to\n"
        for name, (kind, value, place) in values.items()
    )
