"""Finders: how an index finds candidates, a method a file under the contract of `contract.py`."""
