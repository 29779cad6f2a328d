"""`function` and `jit`: arguments become a key, a key finds its trace, a trace runs.

Parts, in the order of the data: binding, decorator, jit_options, weak_methods, dispatch, tracing, traces, recorder, concrete,
jit, native_entry, failures, pickling, compiler_ir.
"""
