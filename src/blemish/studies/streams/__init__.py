"""Continuously changing corruptions: calibration surfaces, paths, walks, streams and their scores."""
