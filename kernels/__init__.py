"""Arrays in, arrays out: the arithmetic of near-duplicate detection, one file a kernel."""

if __name__ != "neardup_gpu.kernels":
    raise ImportError("this folder is the package neardup_gpu.kernels; import it by that name")
