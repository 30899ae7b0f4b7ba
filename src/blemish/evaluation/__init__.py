"""Running models on benchmarks, and the records that come of it."""
