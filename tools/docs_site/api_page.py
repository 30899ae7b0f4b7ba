"""The page of the Python API: every public name, by what it is for; mkdocstrings fills in signatures and docstrings."""

from __future__ import annotations

PAGE = "reference/api.md"

# A test compares these with `blemish.__all__`.
GROUPS = {
    "Corrupt images": ["corrupt", "Corrupt", "Corrupted", "chain", "random_severity", "nearest_preset", "hash_id"],
    "Catalogues, and corruptions of your own": [
        "catalog",
        "sequences",
        "Catalog",
        "Corruption",
        "SeverityTable",
        "PerturbationSequence",
        "CounterRng",
        "Shape",
    ],
    "Images": ["open_source", "open_stored", "Source"],
    "Models": ["open_model", "from_module", "from_function", "Classifier", "Preprocessing", "Training"],
    "Benchmarks": ["load_benchmark", "parse_condition", "Benchmark", "Condition", "Protocol"],
    "Look for what makes numbers wrong": ["audit", "audit_run"],
    "Measure": ["evaluate", "open_run", "find_runs", "Run", "read_records", "Records", "read_predictions"],
    "Numbers and reports": ["score", "compare", "load_results", "write_report", "Scores"],
    "Errors and notices": [
        "BlemishError",
        "InputError",
        "StorageError",
        "WorkerError",
        "NearChanceError",
        "Notice",
    ],
}


def pages() -> dict[str, str]:
    """One page, with a heading for each group."""
    lines: list[str] = []
    for title, names in GROUPS.items():
        lines += ["", f"## {title}"]
        for name in names:
            lines += ["", f"::: blemish.{name}"]
    return {PAGE: "\n".join(lines) + "\n"}
