"""The places where work runs: the choice of a backend, its memory, threads, and the progress that is shown."""
