"""Methods: a method a file."""
