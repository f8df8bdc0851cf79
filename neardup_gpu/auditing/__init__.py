"""Judge the result of any deduplication tool by the exact join: what it lost, what it missed, which reasons hold.

settings.py   settings of an audit, as flags and keywords
columns.py    columns of files that another tool wrote
tools.py      what each tool writes, as claims
claims.py     which documents a tool says that it kept, and why it removed the others
matching.py   the documents of the corpus that the claims mean
split.py      kept and removed documents as two files, which the joins read
joins.py      lost documents and missed pairs, by jobs of `dedup`
clusters.py   stated reasons and clusters, measured pair by pair
differing.py  whether another threshold or another definition explains the difference
audit.py      the audit, from end to end
verdict.py    what an audit found, as users see it
page.py       the page, from template.html
"""
