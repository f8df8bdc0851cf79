"""Find passages that occur more than once: where each stands, which one stays, and the corpus without the others.

settings.py     settings of the search, as flags and keywords
corpus.py       the tokens of all documents, and where old cuts divide them
places.py       the bytes of tokens, and between which tokens no text is cut
repeats.py      the windows that repeat, and those of them that are removed
result.py       what was found, as users see it
substrings.py   the search, from end to end
"""
