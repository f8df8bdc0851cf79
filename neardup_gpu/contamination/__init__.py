"""Find the items of evaluation sets in a training text: where each stands, and what the definitions in use say of it.

settings.py      settings of a check, as flags and keywords
items.py         evaluation sets, read as items with fields of tokens
scanning.py      the training text, streamed; runs of tokens that it shares with items
tally.py         what is known of each item after the scan
cutting.py       the bytes to cut out of texts
verdicts.py      the definitions, and what a check found, as users see it
finding.py       the items of a check, and the result that is made of its scan
contaminated.py  the check, from end to end
in_tasks.py      the check as a job of tasks
page.py          the page, items with passages
checking.py      another scan, which a certificate is compared with
"""
