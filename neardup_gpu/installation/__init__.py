"""Check an installation: `doctor` looks at the machine, `selftest` at the kernels."""
