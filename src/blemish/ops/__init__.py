"""Deterministic image operations in torch."""
