"""The simulated GPU runs the text that a real one gets, and says what a real one would do without a word."""

import gc
import os
import signal
import threading

import numpy as np
import pytest

from jitlab.errors import InternalError
from jitlab.targets.gpu_cuda.gpu_driver import KernelFunction, Parameter, Shape2
from jitlab.targets.gpu_cuda.simulated_driver import SimulatedDriver, SimulatedFault
from tests.gpu.kernels import ADD, HEAD, ROWS, on_device

ORDERS = ["forwards", "backwards", 0, 1]
ROW = np.arange(5000, dtype=np.float32).reshape(5, 1000)


def add(text=ADD, n=1000, grid=(3,), block=(64,), driver=None, size=1000):
    x = np.random.default_rng(0).normal(size=size).astype(np.float32)
    arrays = [x, x[::-1].copy(), np.zeros_like(x)]
    return on_device(driver or SimulatedDriver(), text, "add", arrays, [n], grid, block)


def rows(text=ROWS, grid=(2,), block=(256,), order="forwards", x=ROW):
    arrays = [x, np.zeros(len(x), np.float32)]
    return on_device(SimulatedDriver(order=order), text, "rows", arrays, x.shape, grid, block)[1]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("grid", "block"), [((1,), (1,)), ((3,), (64,)), ((2,), (1024,)), ((40,), (7,))])
def test_a_loop_over_the_grid_adds(order, grid, block):
    x, y, z = add(grid=grid, block=block, driver=SimulatedDriver(order=order))
    np.testing.assert_array_equal(z, x + y)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("grid", "block"), [((1,), (32,)), ((2,), (256,)), ((7,), (1024,))])
def test_a_reduction_by_shuffles_and_shared_memory(order, grid, block):
    np.testing.assert_array_equal(rows(grid=grid, block=block, order=order), ROW.sum(axis=1))


def test_blocks_and_threads_along_two_axes():
    text = (
        HEAD
        + """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
define ptx_kernel void @where(ptr addrspace(1) %x) {
  %1 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %2 = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %3 = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %4 = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
  %5 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %6 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %7 = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %8 = mul i32 %6, %7
  %9 = add i32 %8, %5
  %10 = mul i32 %9, %4
  %11 = add i32 %10, %2
  %12 = mul i32 %11, %3
  %13 = add i32 %12, %1
  %14 = getelementptr i32, ptr addrspace(1) %x, i32 %13
  %15 = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
  %16 = add i32 %13, %15
  store i32 %16, ptr addrspace(1) %14, align 4
  ret void
}
"""
    )
    found = on_device(SimulatedDriver(), text, "where", [np.zeros(2 * 3 * 4 * 5, np.int32)], [], (2, 3), (4, 5))[0]
    np.testing.assert_array_equal(found, np.arange(120) + 3)


BARRIER = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("number", [0, 1])
def test_a_barrier_that_is_missing_is_a_race(order, number):
    parts = ROWS.split(BARRIER)
    assert len(parts) == 3
    text = parts[0] + (BARRIER + parts[1] + parts[2] if number else parts[1] + BARRIER + parts[2])
    with pytest.raises(SimulatedFault, match="race at .*nothing orders them"):
        rows(text, order=order)


def test_a_barrier_that_not_all_threads_meet():
    text = ROWS.replace("last:\n", f"last:\n{BARRIER}")
    with pytest.raises(SimulatedFault, match=r"divergence in block 0 of rows.*32 at barrier \d.*224 at barrier \d"):
        rows(text)


def test_threads_that_end_while_others_wait():
    text = ROWS.replace("label %last, label %row.done", "label %last, label %done")
    with pytest.raises(SimulatedFault, match=r"224 at the end; 32 at "):
        rows(text)


def test_a_shuffle_in_a_part_of_a_warp():
    text = ROWS.replace("  %is.first = icmp eq i32 %warp, 0", "  %is.first = icmp slt i32 %t, 16")
    with pytest.raises(SimulatedFault, match=r"divergence .* 16 at shuffle \d"):
        rows(text)


def test_a_shuffle_in_a_block_of_no_whole_warps():
    with pytest.raises(SimulatedFault, match="divergence"):
        rows(block=(48,))


STORE = "store float %v, ptr addrspace(1) %pz, align 4"
SUM = "%v = fadd float %vx, %vy"
THREAD = "%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"


@pytest.mark.parametrize(("before", "after", "message"), [
    ("icmp slt i64 %i, %n", "icmp sle i64 %i, %n", r"outside at .*, byte 4000 of 4000: %vx = load float"),
    ("float, ptr addrspace(1) %z, i64 %i", "float, ptr addrspace(1) %z, i64 %step", "race at .*, byte 768 of 4000: store"),
    ("float, ptr addrspace(1) %z, i64 %i", "i8, ptr addrspace(1) %z, i64 %i", "misaligned at .*, byte 1 of 4000: store float"),
    (STORE, STORE.replace("%pz", "%z"), "race at .*, byte 0 of 4000: store float"),
])  # fmt: skip
def test_an_access_that_is_wrong(before, after, message):
    assert before in ADD
    with pytest.raises(SimulatedFault, match=message):
        add(ADD.replace(before, after))


def test_an_address_that_is_less_aligned_than_the_text_says():
    text = ADD.replace("load float, ptr %px, align 4", "load float, ptr %px, align 16")
    with pytest.raises(SimulatedFault, match="thread 1 of block 0 of add: misaligned"):
        add(text)


def test_memory_that_was_freed():
    driver, kernel = SimulatedDriver(), KernelFunction("add", (Parameter(0, 8),) * 4)
    module = driver.load(ADD, [kernel])
    addresses = [driver.allocate(400) for _ in range(3)]
    driver.free(addresses[2])
    given = np.array([*addresses, 100], np.uint64)
    with pytest.raises(SimulatedFault, match="outside"):
        driver.launch(module.functions[0], Shape2(1), Shape2(32), [given.ctypes.data + 8 * k for k in range(4)])
    with pytest.raises(SimulatedFault, match="not allocated"):
        driver.free(addresses[2])


def test_blocks_have_shared_memory_of_their_own():
    """Were it one piece, a block would read what another one wrote; in it is nothing at the start."""
    text = (
        HEAD
        + f"""
@mine = internal addrspace(3) global [32 x i32] undef, align 16
define ptx_kernel void @own(ptr addrspace(1) %x, ptr addrspace(1) %y) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %p = getelementptr i32, ptr addrspace(3) @mine, i32 %t
  %v = load i32, ptr addrspace(3) %p, align 4
  %b32 = mul i32 %b, 32
  %i = add i32 %b32, %t
  %xp = getelementptr i32, ptr addrspace(1) %x, i32 %i
  store i32 %v, ptr addrspace(1) %xp, align 4
  store i32 %i, ptr addrspace(3) %p, align 4
{BARRIER}  %l = load i32, ptr addrspace(3) getelementptr inbounds (i8, ptr addrspace(3) @mine, i64 4), align 4
  %g = addrspacecast ptr addrspace(3) @mine to ptr
  %m = load i32, ptr %g, align 4
  %s = add i32 %l, %m
  %yp = getelementptr i32, ptr addrspace(1) %y, i32 %i
  store i32 %s, ptr addrspace(1) %yp, align 4
  ret void
}}
"""
    )
    x, y = on_device(SimulatedDriver(), text, "own", [np.zeros(96, np.int32), np.zeros(96, np.int32)], [], (3,), (32,))
    assert (x == -1).all()
    np.testing.assert_array_equal(y, np.repeat([0, 32, 64], 32) * 2 + 1)


def test_shared_memory_has_an_end():
    text = ROWS.replace(
        "%warp.at = getelementptr float, ptr addrspace(3) @partial, i32 %warp",
        "%far = add i32 %warp, 25\n  %warp.at = getelementptr float, ptr addrspace(3) @partial, i32 %far",
    )
    with pytest.raises(SimulatedFault, match="thread 224 of block 0 of rows: outside"):
        rows(text)


def test_blocks_that_use_one_place_race_whatever_barriers_they_have():
    text = ROWS.replace(
        "%yp = getelementptr float, ptr addrspace(1) %y, i64 %r", "%yp = getelementptr float, ptr addrspace(1) %y, i64 0"
    )
    with pytest.raises(SimulatedFault, match="race at .*, byte 0 of 20: store .* of block 0 used it"):
        rows(text)
    one = rows(text, grid=(1,))
    assert one[0] == ROW[4].sum()


def test_what_all_threads_change_is_no_race_when_they_do_so_atomically():
    text = ADD.replace(
        "store float %v, ptr addrspace(1) %pz, align 4",
        "%old = atomicrmw fadd ptr addrspace(1) %z, float 1.0 monotonic, align 4",
    )
    assert add(text)[2][0] == 1000
    text = ADD.replace(
        "store float %v, ptr addrspace(1) %pz, align 4", "store atomic float 1.0, ptr addrspace(1) %z monotonic, align 4"
    )
    assert add(text)[2][0] == 1
    far = text.replace("ptr addrspace(1) %z monotonic", "ptr addrspace(1) %far monotonic").replace(
        "\none:", "\none:\n  %far = getelementptr float, ptr addrspace(1) %z, i64 1000"
    )
    with pytest.raises(SimulatedFault, match="outside"):
        add(far)


@pytest.mark.parametrize(("before", "after", "declared", "message"), [
    (SUM, "%v = frem float %vx, %vy", "", "frem"),
    (SUM, "%v = call float @llvm.sin.f32(float %vx)", "float @llvm.sin.f32(float)", "llvm.sin.f32"),
    (SUM, "%v = call float @sinf(float %vx)", "float @sinf(float)", "calls sinf"),
    (SUM, "%v = fadd float %vx, %vy\n %m = alloca i32, align 4\n store i32 0, ptr %m, align 8", "", "aligned less"),
    (THREAD, THREAD.replace("tid.x", "laneid"), "i32 @llvm.nvvm.read.ptx.sreg.laneid()", "laneid"),
])  # fmt: skip
def test_what_no_gpu_has_is_refused(before, after, declared, message):
    assert before in ADD
    with pytest.raises(InternalError, match=message):
        add(ADD.replace(before, after) + (f"declare {declared}" if declared else ""))


def test_functions_of_the_module_may_touch_memory_and_read_registers():
    text = (
        ADD.replace("%vx = load float, ptr %px, align 4, !invariant.load !0", "%vx = call float @there(ptr %px)")
        + """
define internal float @there(ptr %p) noinline {
  %v = load float, ptr %p, align 4
  %t = call i32 @here()
  %f = sitofp i32 %t to float
  %s = fadd float %v, %f
  ret float %s
}
define internal i32 @here() {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  ret i32 %t
}
"""
    )
    x, y, z = add(text)
    np.testing.assert_array_equal(z, x + np.float32(np.arange(1000) % 192 % 64) + y)
    with pytest.raises(SimulatedFault, match="outside"):
        add(
            text.replace("ptr %p,", "ptr %far,").replace(
                "noinline {", "noinline {\n  %far = getelementptr float, ptr %p, i64 1000"
            )
        )


def test_memory_that_nobody_wrote_shows():
    driver = SimulatedDriver(memory_bytes=1000)
    address = driver.allocate(40)
    found = np.zeros(10, np.float32)
    driver.copy_out(found, address)
    assert address % 256 == 0 and np.isnan(found).all()
    with pytest.raises(SimulatedFault, match="a copy of 44 bytes"):
        driver.copy_in(address, np.zeros(11, np.float32))
    with pytest.raises(SimulatedFault, match="a copy"):
        driver.copy_within(address + 4, address, 40)
    with pytest.raises(MemoryError):
        driver.allocate(961)
    driver.copy_in(address + 8, np.arange(8, dtype=np.float32))
    driver.copy_within(address, address + 8, 8)
    driver.copy_out(found, address)
    np.testing.assert_array_equal(found, [0, 1, *range(8)])
    driver.free(address)
    assert driver.held_bytes == 0
    with pytest.raises(SimulatedFault, match="not allocated"):
        driver.free(address)
    driver.copy_in(address, np.zeros(0))


@pytest.mark.parametrize(("grid", "block"), [((0,), (32,)), ((1,), (1025,)), ((1, 65536), (32,))])
def test_a_grid_that_no_gpu_takes(grid, block):
    with pytest.raises(SimulatedFault, match="launched with a grid"):
        add(grid=grid, block=block)


def test_a_kernel_has_the_parameters_that_are_given():
    with pytest.raises(SimulatedFault, match="no kernel add of 3"):
        SimulatedDriver().load(ADD, [KernelFunction("add", (Parameter(0, 8),) * 3)])
    with pytest.raises(SimulatedFault, match="no kernel sub of 4"):
        SimulatedDriver().load(ADD, [KernelFunction("sub", (Parameter(0, 8),) * 4)])
    with pytest.raises(SimulatedFault, match="shared memory"):
        SimulatedDriver().load(
            ROWS.replace("[32 x float]", "[13000 x float]"), [KernelFunction("rows", (Parameter(0, 8),) * 4)]
        )


def test_a_module_lives_as_long_as_a_function_of_it():
    driver, kernel = SimulatedDriver(), KernelFunction("add", (Parameter(0, 8),) * 4)
    (function,) = driver.load(ADD, [kernel]).functions
    gc.collect()
    addresses = [driver.allocate(400) for _ in range(3)]
    driver.copy_in(addresses[0], np.ones(100, np.float32))
    driver.copy_in(addresses[1], np.ones(100, np.float32))
    given = np.array([*addresses, 100], np.uint64)
    driver.launch(function, Shape2(1), Shape2(32), [given.ctypes.data + 8 * k for k in range(4)])
    found = np.zeros(100, np.float32)
    driver.copy_out(found, addresses[2])
    assert (found == 2).all() and driver.launched == {"add": 1}


def test_time_goes_on_between_two_marks():
    driver = SimulatedDriver()
    before = driver.mark()
    driver.wait()
    assert driver.elapsed_ns(before, driver.mark()) >= 0


def test_the_threads_that_a_fault_left_waiting_are_ended(monkeypatch):
    """LLVM's frames of them are memory that nothing else frees."""
    told = []
    real = SimulatedDriver.load

    def load(driver, text, kernels):
        module = real(driver, text, kernels)
        destroy = module.destroy
        module.destroy = lambda *given: told.append(given[2]) or destroy(*given)
        return module

    monkeypatch.setattr(SimulatedDriver, "load", load)
    with pytest.raises(SimulatedFault, match="16 at shuffle"):
        rows(ROWS.replace("  %is.first = icmp eq i32 %warp, 0", "  %is.first = icmp slt i32 %t, 16"))
    assert told == [512]


#: Each thread tells its neighbour something through shared memory, `turns` times.
NEIGHBOURS = (
    HEAD
    + """
declare void @llvm.nvvm.bar.warp.sync(i32)
@told = internal addrspace(3) global [64 x i32] undef, align 16
define ptx_kernel void @tell(ptr addrspace(1) %x, i64 %turns) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %n = xor i32 %t, 1
  %mine = getelementptr i32, ptr addrspace(3) @told, i32 %t
  %other = getelementptr i32, ptr addrspace(3) @told, i32 %n
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %v = phi i32 [ %t, %entry ], [ %w, %next ]
  store i32 %v, ptr addrspace(3) %mine, align 4
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %w = load i32, ptr addrspace(3) %other, align 4
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %turns
  br i1 %more, label %next, label %done
done:
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %t
  store i32 %w, ptr addrspace(1) %p, align 4
  ret void
}
"""
)


@pytest.mark.parametrize("order", ORDERS)
def test_a_warp_has_barriers_of_its_own(order):
    def tell(text=NEIGHBOURS):
        return on_device(SimulatedDriver(order=order), text, "tell", [np.zeros(64, np.int32)], [3], (1,), (64,))[0]

    np.testing.assert_array_equal(tell(), np.arange(64) ^ 1)
    with pytest.raises(SimulatedFault, match="race"):
        tell(NEIGHBOURS.replace("xor i32 %t, 1", "xor i32 %t, 32"))
    first, second, third = NEIGHBOURS.split("  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n")
    for text in (first + second + "  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n" + third,
                 first + "  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n" + second + third):  # fmt: skip
        with pytest.raises(SimulatedFault, match="race"):
            tell(text)
    everybody = NEIGHBOURS.replace("xor i32 %t, 1", "and i32 %t, 32")  # all read what one of them then writes
    np.testing.assert_array_equal(tell(everybody), np.arange(64) & 32)


def test_a_thread_may_hold_vectors_while_it_waits():
    """LLVM keeps them in memory that has to be aligned as they are."""
    text = (
        HEAD
        + f"""
define ptx_kernel void @hold(ptr addrspace(1) %x, ptr addrspace(1) %y) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = mul i32 %t, 16
  %p = getelementptr float, ptr addrspace(1) %x, i32 %at
  %q = getelementptr float, ptr addrspace(1) %y, i32 %at
  %v = load <16 x float>, ptr addrspace(1) %p, align 16
{BARRIER}  %w = fadd <16 x float> %v, %v
  store <16 x float> %w, ptr addrspace(1) %q, align 16
  ret void
}}
"""
    )
    x = np.arange(33 * 16, dtype=np.float32)
    _, y = on_device(SimulatedDriver(), text, "hold", [x, np.zeros_like(x)], [], (1,), (33,))
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_beside_a_thread_that_uses_it_leaves_it_usable():
    driver, taken, done = SimulatedDriver(), threading.Event(), threading.Event()

    def hold():
        with driver._lock:
            taken.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends it where it waits for ever
        driver.free(driver.allocate(8))
        os._exit(0)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
