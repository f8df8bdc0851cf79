"""Compare the versions that README's table of other tools names with the versions that pip installs today.

    python -m benchmarks.versions

prints a line for each tool whose version has changed: its row in README has to be read again, and its pin in
`requirements.txt` moved if `peers.py` runs it. Exit status: 0, nothing has changed; 1, something has; 2, pip finds none
of the tools, so nothing is known.
"""

import json
import platform
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def named_versions(readme: str) -> dict[str, str]:
    """Return the version of each tool in the table, except neardup_gpu, which is in bold type."""
    return dict(re.findall(r"^\| ([\w-]+) (\d[\w.]*) \|", readme, re.MULTILINE))


def version_by_pip(package: str) -> str | None:
    """Return the version that pip would install for this Python, or None if pip finds none."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries", "0", "--timeout", "15"]
    asked = ["install", "--dry-run", "--no-deps", "--ignore-installed", "--quiet", "--report", "-", package]
    done = subprocess.run([*pip, *asked], capture_output=True, text=True)
    return None if done.returncode else json.loads(done.stdout)["install"][0]["metadata"]["version"]


def main() -> int:
    """Print what has changed and return the exit status."""
    named = named_versions(README.read_text())
    found = {package: version_by_pip(package) for package in named}
    if not any(found.values()):
        print(f"versions: pip finds none of {', '.join(named)}; is the package index within reach?", file=sys.stderr)
        return 2
    changed = {package: version for package, version in found.items() if version != named[package]}
    for package, version in changed.items():
        today = f"installs {version}" if version else "finds no version"
        print(f"{package}: README names {named[package]}, pip {today}")
    unchanged = len(named) - len(changed)
    print(f"{unchanged} of {len(named)} tools have the version that README names (Python {platform.python_version()})")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
