"""What is measured: conditions, and benchmarks made of them, built in or read from a file."""
