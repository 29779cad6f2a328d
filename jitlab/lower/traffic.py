"""What a kernel moves: bytes read and written in memory."""

from __future__ import annotations

from jitlab.ir.program import Buffer, Call, Expr, For, Gemm, Index, Kernel, Load, Repeat, Store, expressions, walk

from .sizes import Sizes


def traffic(kernel: Kernel, sizes: Sizes) -> tuple[int, int]:
    """Bytes a kernel reads and writes in memory: each distinct element once, rows of scratch not at all."""
    loops: dict[str, int] = {}
    read: dict[str, dict[Index, int]] = {}
    written: dict[str, dict[Index, int]] = {}
    whole: dict[str, int] = {}

    def note(table: dict[str, dict[Index, int]], buffer: Buffer, offset: Index, gathered: bool) -> None:
        if buffer.kind == "row":
            return
        size = buffer.dtype.itemsize
        for n in buffer.shape:
            size *= sizes.value(n)
        whole[buffer.name] = size
        touched = buffer.dtype.itemsize
        for v in (*offset.vars, *offset.const.symbols):
            touched *= loops.get(v, 1)
        table.setdefault(buffer.name, {})[offset] = size if gathered else touched

    def visit(e: Expr, seen: set[int]) -> None:
        if id(e) in seen:
            return
        seen.add(id(e))
        if isinstance(e, Load):
            note(read, e.buffer, e.offset, bool(e.gathered))
        for part in e.parts:
            visit(part, seen)

    for s in walk(kernel.body):
        if isinstance(s, For):
            loops[s.var] = min(sizes.value(i.const) for i in s.extent if not i.vars)
            if s.var == "j" and "b" in loops:  # a block of a whole reduction: together the blocks cover everything
                left = next(i for i in s.extent if i.vars)
                loops["j"], loops["b"] = sizes.value(left.const), 1
        elif isinstance(s, Repeat):
            loops[s.symbol] = 1 if s.count is None else max(sizes.value(s.count), 0)
        elif isinstance(s, Store):
            note(written, s.buffer, s.offset, bool(s.gathered))
        elif isinstance(s, Gemm):
            for buffer, offset, extent in ((s.a, s.a_offset, s.m * s.k), (s.b, s.b_offset, s.k * s.n)):
                count = sizes.value(extent)
                for v in offset.vars:
                    count *= loops.get(v, 1)
                note(read, buffer, offset, False)
                read[buffer.name][offset] = count * buffer.dtype.itemsize
            count = sizes.value(s.m * s.n)
            for v in s.out_offset.vars:
                count *= loops.get(v, 1)
            note(written, s.out, s.out_offset, False)
            written[s.out.name][s.out_offset] = count * s.out.dtype.itemsize
        elif isinstance(s, Call):
            for k, buffer in enumerate((*s.outs, *s.ins)):
                note(written if k < len(s.outs) else read, buffer, Index(), True)
        for e in expressions(s):
            visit(e, set())
    inner = {name for name in read if name in written}  # written by this kernel and still in cache
    bytes_read = sum(min(whole[name], sum(parts.values())) for name, parts in read.items() if name not in inner)
    return bytes_read, sum(min(whole[name], sum(parts.values())) for name, parts in written.items())
