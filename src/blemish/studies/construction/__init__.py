"""Building benchmarks from accuracy tables: overlap, selection, categories, generation, natural correlation."""
