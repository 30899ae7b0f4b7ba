"""Corruptions: severity tables, draws and deterministic image operations."""
