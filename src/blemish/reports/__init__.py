"""Turning results into something to look at."""
