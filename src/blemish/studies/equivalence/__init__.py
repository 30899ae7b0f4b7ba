"""Whether images made on the fly can stand in for a set that somebody else made."""
