"""An index that grows: documents are added, searched and removed at any moment; an acknowledged change stays.

    NAME/manifest.00000042     JSON with a checksum: the recipe, the segments, progress of inputs, counts
    NAME/segments/00000007     a file of named arrays, never changed: see `segments.py`; by the exact method, also an
                               order of shingles: see `order.py`
    NAME/deleted/00000009      which documents and entries of a segment are dead
    NAME/writer.lock           locked by the one process that writes, and its name

Words
-----
An **entry** is a distinct sequence of words; its **members** are the documents that have it, each by a sequence number
that is never used twice. An entry is called by the number of the document that founded it. Features, sets and pairs
belong to entries: a copy costs a few bytes, and taking one away changes nothing else. Documents without words are
entries of their own.

Adding
------
Copies are found by the 128 bits of their word sequence, candidates by the method (`methods/finding/`), and pairs are
verified from stored sets. What is kept of documents is chosen when an index is made (`keeps.py`): without sets, pairs
are estimated from stored sketches (`comparing.py`). V, the set of all pairs at the threshold, is followed for each new
entry in order of sequence as far as decisions and the listing rule of `stages/partners.py` need, and all pairs that
were found are stored with the new entry. An entry is **open** if some of its pairs in V may not be stored: it has
enough partners, and more candidates than were looked at.

An entry is kept when it has no pair with a kept one. As later documents rank after it, that is final; what is removed
because of an entry that is taken away may be kept by the next `decide`.

`decide` is the job's `keep` over live entries and their pairs. The stored pairs suffice if no live entry is open, or if
priority is "first" and nothing was ever taken away; otherwise pairs are found anew among what is stored, by the stages
of `dedup` themselves. Where nothing is verified no pairs are stored, and they always are.

An index that was made with a modulus keeps about every m-th shingle of its entries in a table, too, by which queries
ask what contains a text, or is contained in it (`containment.py`, kernel `tally`).

Commits
-------
A commit writes a segment of what is new, and the dead rows that are new, syncs them and their folders, writes the
manifest under another name, syncs it, renames it, and syncs the folder. The manifest with the greatest number is the
index. No log is replayed. What no manifest names is removed by the next writer.

A reader holds one manifest, its snapshot, by a shared lock on the manifest's file, which the system takes away when the
process ends, however it ends. A writer removes an older manifest, and the files that it alone names, only where it gets
an exclusive lock on it.

Segments are merged with their neighbours (`merging.py`), eight of a size at a time, so that there are few; the dead
vanish then. While documents are added, a second thread writes the merged segment; the thread that adds publishes it
after its next commit, with what has died meanwhile.
"""

from __future__ import annotations

from .adding import Added
from .index import Index
from .queries import notes_of
from .removing import Removed

__all__ = ["Added", "Index", "Removed", "notes_of"]
