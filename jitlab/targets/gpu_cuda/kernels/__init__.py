"""Kernels of a Program as LLVM text for NVPTX, which many threads run.

Parts, in the order of the data: parts, schedules, occupancy, slots, gpu_emitter, teams, running_values, thread_loops,
team_reductions, held_rows, kernel_writer, product_writer, kernel_module, located_kernels.
"""
