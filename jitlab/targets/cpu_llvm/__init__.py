"""Native code for the processor, through LLVM text and llvmlite."""
