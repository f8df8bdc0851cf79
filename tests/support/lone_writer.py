"""A process that adds documents to an index one by one: `python lone_writer.py FOLDER NAME NUMBER [HOLD]`.

It prints a line for each document that was acknowledged. A refusal is printed and tried again; with HOLD the writer
keeps the index open for so many seconds after each document, and tells when it has been refused for good.
"""

from __future__ import annotations

import sys
import time

import neardup_gpu as nd
from neardup_gpu.store import locks


def main(folder: str, name: str, number: int, hold: float = 0.0) -> None:
    locks.LEASE = 2.0
    done, tries = 0, 0
    while done < number and tries < 400:
        try:
            with nd.Index.open(folder, engine=nd.Engine(backend="cpu", threads=1)) as index:
                while done < number:
                    index.add({"id": [f"{name}{done}"], "text": [f"{name} {done} to be or not"]}, id_column="id")
                    print(f"added {name}{done}", flush=True)
                    done += 1
                    time.sleep(hold)
                    if done % 3 == 0:
                        break
        except nd.OutputError as error:
            print(f"refused: {error}", flush=True)
            tries += 1
            time.sleep(0.05)
        except nd.InputError as error:  # it was committed, and the answer was lost
            if "is in the index already" not in str(error):
                raise
            print(f"added {name}{done}", flush=True)
            done += 1


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *map(float, sys.argv[4:]))
