"""A command on a pseudo-terminal."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios


def on_terminal(*arguments: object, columns: int = 80, **environment: str) -> tuple[int, str]:
    """Status, and all that `neardup` with these arguments sends to a terminal of so many columns."""
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    unset = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    command = [sys.executable, "-m", "neardup_gpu", *map(str, arguments)]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        env={**inherited, "TERM": "xterm-256color", **environment},
    ) as process:
        os.close(terminal)
        seen = b""
        while True:
            try:
                block = os.read(main, 4096)
            except OSError:  # the terminal was closed
                break
            if not block:
                break
            seen += block
    os.close(main)
    return process.returncode, seen.decode("utf-8", "replace").replace("\r\n", "\n")
