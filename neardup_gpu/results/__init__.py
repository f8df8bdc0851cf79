"""Make what a job gives back: its decisions, tables, files and explanations."""
