"""Find the passages that documents share, and the places of each in both documents.

settings.py  settings of the search, as flags and keywords
layout.py    the documents of both inputs in one order, sources first
finding.py   the runs that two documents share, the best partners of each, and the passages that runs make up
placing.py   the inputs, read in this process; the bytes of passages, and the words in which they differ
in_tasks.py  the inputs, read by tasks
result.py    what was found, as users see it
page.py      the page: a map of sources, and pairs of documents side by side
search.py    the search, from end to end
"""
