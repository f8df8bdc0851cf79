"""Work on text: kinds of tokens, units, words, comments."""
