"""What lies on disk: spools, artefacts, ids, and named arrays in one mapped file with checksums."""
