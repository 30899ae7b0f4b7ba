"""``blemish build``: benchmarks from accuracies."""
