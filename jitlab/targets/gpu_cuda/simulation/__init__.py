"""What runs a GPU's LLVM text on the processor: each CUDA thread is a coroutine of LLVM's own, each access is looked at.

Parts, in the order of the data: thread_records, runtime_text, processor_text.
"""
