"""The forms of the Hugging Face Hub, read back by a YAML parser and by the Hub's own library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blemish.core.errors import InputError
from blemish.evaluation.runs import Run
from blemish.studies.leaderboard.hub import Source, eval_results_yaml, model_index_yaml
from blemish.studies.leaderboard.make import numbers_of
from command_line import invoke
from foreign import foreign
from synthetic_runs import severities, write_run

yaml: Any = foreign("yaml")

NAME = 'a "net": #1'


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return write_run(tmp_path, NAME, severities(("fog", "snow")), images=50)


def test_eval_results_are_a_list_of_entries(run: Run) -> None:
    numbers = numbers_of(run, replicates=50)
    source = Source(url="https://example.org/x?a=1#b", name="it's mine", org="me")
    tasks = {"error": "mean-error", "clean_error": "clean"}
    text = eval_results_yaml(
        numbers, run, tasks, dataset="me/data", revision="abc", date="2026-03-31", source=source, seal="sha256:12"
    )
    first, second = yaml.safe_load(text)
    # The keys of hub-docs' eval_results.yaml.
    assert set(first) == {"dataset", "value", "date", "source", "notes"}
    assert first["dataset"] == {"id": "me/data", "task_id": "mean-error", "revision": "abc"}
    assert first["value"] == pytest.approx(numbers.values["error"].value, abs=1e-4)
    assert isinstance(first["value"], float)
    assert first["date"] == "2026-03-31", "a string, not a date"
    assert first["source"] == {"url": "https://example.org/x?a=1#b", "name": "it's mine", "org": "me"}
    assert second["dataset"]["task_id"] == "clean"
    for part in ("mean error in %", "lower is better", "50 images of synthetic", "95 % interval", "sha256:12"):
        assert part in first["notes"]


def test_the_library_of_the_hub_reads_them(run: Run) -> None:
    hub: Any = foreign("huggingface_hub")
    if not hasattr(hub, "parse_eval_result_entries"):
        pytest.skip("this huggingface_hub knows no .eval_results")
    numbers = numbers_of(run, replicates=50)
    text = eval_results_yaml(numbers, run, {"error": "t"}, dataset="me/data", source=Source(url="https://example.org"))
    (entry,) = hub.parse_eval_result_entries(yaml.safe_load(text))
    assert (entry.dataset_id, entry.task_id, entry.source_url) == ("me/data", "t", "https://example.org")
    assert entry.value == pytest.approx(numbers.value.value, abs=1e-4)
    assert hub.eval_result_entries_to_yaml([entry]) == yaml.safe_load(text), "nothing is lost or added on the way"


def test_a_model_index_is_read_by_the_library_of_the_hub(run: Run) -> None:
    hub: Any = foreign("huggingface_hub.repocard_data")
    numbers = numbers_of(run, replicates=50)
    text = model_index_yaml(numbers, run, ["error", "clean_error"], source=Source(url="https://example.org", name="n"))
    head = text.removeprefix("---\n").removesuffix("---\n")
    results = hub.model_index_to_eval_results(yaml.safe_load(head)["model-index"])
    assert results[0] == NAME
    assert [result.metric_type for result in results[1]] == ["error", "clean_error"]
    assert [result.metric_value for result in results[1]] == pytest.approx(
        [numbers.values[name].value for name in ("error", "clean_error")], abs=1e-4
    )
    assert {result.dataset_type for result in results[1]} == {"synthetic"}
    assert {result.source_url for result in results[1]} == {"https://example.org"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tasks": {}}, "no id of a dataset or of a task"),
        ({"dataset": ""}, "no id of a dataset or of a task"),
        ({"date": "yesterday"}, "date 'yesterday'"),
        ({"tasks": {"mce": "t"}}, "no number 'mce'; expected some of error"),
    ],
)
def test_what_the_hub_would_refuse_is_refused(run: Run, settings: dict[str, Any], message: str) -> None:
    known = {"tasks": {"error": "t"}, "dataset": "me/data", **settings}
    with pytest.raises(InputError, match=message):
        eval_results_yaml(numbers_of(run, replicates=10), run, known.pop("tasks"), **known)


def test_a_source_without_an_address() -> None:
    with pytest.raises(InputError, match="without an address"):
        Source(user="me")


def test_the_command(tmp_path: Path) -> None:
    run = write_run(tmp_path, "net", severities(("fog", "snow")), images=50)
    code, out, _ = invoke("leaderboard", "card", run.folder, "--replicates", 20)
    assert code == 0
    assert yaml.safe_load(out.removeprefix("---\n").removesuffix("---\n"))["model-index"][0]["name"] == "net"
    file = tmp_path / "results.yaml"
    arguments = ("--form", "eval-results", "--dataset", "me/data", "--task", "error=t", "--replicates", 20, "-o", file)
    assert invoke("leaderboard", "card", run.folder, *arguments)[0] == 0
    assert yaml.safe_load(file.read_text())[0]["dataset"]["task_id"] == "t"
    code, _, complaint = invoke("leaderboard", "card", run.folder, "--task", "error=t")
    assert (code, "--form eval-results" in complaint) == (2, True)
    code, _, complaint = invoke("leaderboard", "card", run.folder, "--form", "eval-results", "--task", "error")
    assert (code, "METRIC=ID" in complaint) == (2, True)
