"""List the files of a place."""

from neardup_gpu.store.exchange import sealed
from neardup_gpu.store.places import Place


def files_of(place: Place, folder: str = "") -> list[str]:
    """Return the names of the files in a place, or in a folder of it, as the methods of a place take them."""
    inner = place.child(folder) if folder else place
    return [f"{folder}/{name}" if folder else name for name in inner.entries() if inner.exists(name)]


def num_bytes(place: Place, name: str) -> int:
    """Return the bytes of a file that tasks exchange."""
    return sealed(place, name)[0]
