"""Where work runs: the choice of a backend, its memory, threads, and what is said while it runs."""
