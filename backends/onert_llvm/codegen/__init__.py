"""From LLVM IR to machine code: the calling convention of kernels, their compilation, and the code's fingerprint."""
