"""Files on disk: spools, artefacts, ids, named arrays in one mapped file with checksums, and what tasks hand on."""
