"""Run a verb: dedup, compare, sketch, pairs, clusters, info."""
