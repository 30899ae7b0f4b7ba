"""The page of the Python API: every public name, by what it is for; mkdocstrings fills in signatures and docstrings."""

from __future__ import annotations

PAGE = "reference/api.md"
HEAD = """\
# Python API

What `import blemish` gives. Everything else may change without notice. Names are imported when they are first used, so
that `import blemish` is quick."""

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
    lines = [HEAD]
    for title, names in GROUPS.items():
        lines += ["", f"## {title}"]
        for name in names:
            lines += ["", f"::: blemish.{name}"]
    return {PAGE: "\n".join(lines) + "\n"}
