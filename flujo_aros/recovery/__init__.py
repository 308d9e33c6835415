"""What to do when reading fails: the ladder, without I/O."""
