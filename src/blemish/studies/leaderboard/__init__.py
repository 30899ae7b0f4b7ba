"""Leaderboards one can defend: sealed entries that anyone can make, and ranks that say no more than tests allow."""
