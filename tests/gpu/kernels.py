"""Kernels for the simulated GPU, written by hand: a loop over the grid, a reduction by shuffles and shared memory."""

from __future__ import annotations

import numpy as np

from jitlab.targets.gpu_cuda.gpu_driver import KernelFunction, Parameter, Shape2

DECLARATIONS = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
"""

HEAD = f'target triple = "nvptx64-nvidia-cuda"\n{DECLARATIONS}'

#: z = x + y, element by element.
ADD = (
    HEAD
    + """
define ptx_kernel void @add(ptr addrspace(1) noalias %x, ptr addrspace(1) noalias %y, ptr addrspace(1) noalias %z, i64 %n) {
entry:
  %xg = addrspacecast ptr addrspace(1) %x to ptr
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %w = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %g = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %o = mul i32 %b, %w
  %s = add i32 %o, %t
  %start = sext i32 %s to i64
  %all = mul i32 %w, %g
  %step = sext i32 %all to i64
  br label %next
next:
  %i = phi i64 [ %start, %entry ], [ %j, %one ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %done
one:
  %px = getelementptr float, ptr %xg, i64 %i
  %py = getelementptr float, ptr addrspace(1) %y, i64 %i
  %pz = getelementptr float, ptr addrspace(1) %z, i64 %i
  %vx = load float, ptr %px, align 4, !invariant.load !0
  %vy = load float, ptr addrspace(1) %py, align 4
  %v = fadd float %vx, %vy
  store float %v, ptr addrspace(1) %pz, align 4
  %j = add i64 %i, %step
  br label %next
done:
  ret void
}
!0 = !{}
"""
)

#: The sum of each row by one block: a warp by shuffles, the warps through shared memory.
ROWS = (
    HEAD
    + """
@partial = internal addrspace(3) global [32 x float] undef, align 16

define ptx_kernel void @rows(ptr addrspace(1) noalias %x, ptr addrspace(1) noalias %y, i64 %rows, i64 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %w = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %g = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %t64 = sext i32 %t to i64
  %b64 = sext i32 %b to i64
  %w64 = sext i32 %w to i64
  %g64 = sext i32 %g to i64
  %lane = and i32 %t, 31
  %warp = lshr i32 %t, 5
  %warps = lshr i32 %w, 5
  %warp.at = getelementptr float, ptr addrspace(3) @partial, i32 %warp
  %lane.at = getelementptr float, ptr addrspace(3) @partial, i32 %lane
  br label %row
row:
  %r = phi i64 [ %b64, %entry ], [ %r.next, %row.done ]
  %more.rows = icmp slt i64 %r, %rows
  br i1 %more.rows, label %begin, label %done
begin:
  %base = mul i64 %r, %n
  br label %next
next:
  %i = phi i64 [ %t64, %begin ], [ %j, %one ]
  %sum = phi float [ 0.0, %begin ], [ %more.sum, %one ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %tree
one:
  %k = add i64 %base, %i
  %p = getelementptr float, ptr addrspace(1) %x, i64 %k
  %v = load float, ptr addrspace(1) %p, align 4
  %more.sum = fadd float %sum, %v
  %j = add i64 %i, %w64
  br label %next
tree:
  %d = phi i32 [ 16, %next ], [ %d.half, %tree ]
  %s = phi float [ %sum, %next ], [ %s.more, %tree ]
  %bits = bitcast float %s to i32
  %got = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %bits, i32 %d, i32 31)
  %other = bitcast i32 %got to float
  %s.more = fadd float %s, %other
  %d.half = lshr i32 %d, 1
  %again = icmp ne i32 %d.half, 0
  br i1 %again, label %tree, label %keep
keep:
  %leads = icmp eq i32 %lane, 0
  br i1 %leads, label %note, label %noted
note:
  store float %s.more, ptr addrspace(3) %warp.at, align 4
  br label %noted
noted:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %is.first = icmp eq i32 %warp, 0
  br i1 %is.first, label %last, label %row.done
last:
  %has = icmp slt i32 %lane, %warps
  br i1 %has, label %take, label %joined
take:
  %q = load float, ptr addrspace(3) %lane.at, align 4
  br label %joined
joined:
  %mine = phi float [ 0.0, %last ], [ %q, %take ]
  br label %tree2
tree2:
  %e = phi i32 [ 16, %joined ], [ %e.half, %tree2 ]
  %u = phi float [ %mine, %joined ], [ %u.more, %tree2 ]
  %bits2 = bitcast float %u to i32
  %got2 = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %bits2, i32 %e, i32 31)
  %other2 = bitcast i32 %got2 to float
  %u.more = fadd float %u, %other2
  %e.half = lshr i32 %e, 1
  %again2 = icmp ne i32 %e.half, 0
  br i1 %again2, label %tree2, label %tell
tell:
  %is.zero = icmp eq i32 %lane, 0
  br i1 %is.zero, label %put, label %row.done
put:
  %yp = getelementptr float, ptr addrspace(1) %y, i64 %r
  store float %u.more, ptr addrspace(1) %yp, align 4
  br label %row.done
row.done:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %r.next = add i64 %r, %g64
  br label %row
done:
  ret void
}
"""
)


def on_device(driver, text, name, arrays, numbers, grid, block):
    """What is in the arrays when a kernel of that name has run; it takes their addresses, then the numbers as int64."""
    addresses = [driver.allocate(max(a.nbytes, 1)) for a in arrays]
    try:
        for address, array in zip(addresses, arrays, strict=True):
            driver.copy_in(address, array)
        context = np.array([*addresses, *numbers], np.uint64)
        kernel = KernelFunction(name, tuple(Parameter(slot, 8) for slot in range(len(context))))
        module = driver.load(text, [kernel])
        places = [context.ctypes.data + 8 * slot for slot in range(len(context))]
        driver.launch(module.functions[0], Shape2(*grid), Shape2(*block), places)
        driver.wait()
        found = [np.empty_like(a) for a in arrays]
        for address, array in zip(addresses, found, strict=True):
            driver.copy_out(array, address)
        return found
    finally:
        for address in addresses:
            driver.free(address)
