"""fluents eval: the published numbers, what is wrong with the files people give it, and memory."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from command_run import Done, Run
from fluents import jsonl
from fluents.cli.eval import app
from fluents.metrics import Metric
from fluents.metrics import score as score_by
from fluents.records import Procedure, Salience, StateChange, Trace


def answer_file(path: Path, steps: Iterable[tuple[str, list[str]]]) -> Path:
    path.write_text("".join(json.dumps({"id": key, "answers": said}) + "\n" for key, said in steps), encoding="utf-8")
    return path


def heat(after: str, entity: str = "pot") -> str:
    return f"heat of {entity} was cold before and {after} afterwards"


STEPS = {f"www.x.org/{name}||{step}": [heat("hot"), heat("warm", "lid")] for name in "abc" for step in (1, 2)}


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return answer_file(tmp_path / "gold.jsonl", STEPS.items())


# The published numbers


def rows(done: Done, column: str, digits: int = 1) -> list[float]:
    return [round(row[column], digits) for row in done.json["scores"].values()]


@pytest.mark.usefixtures("mirror")
def test_original_to_the_last_digit_with_intervals_and_published_systems(run: Run) -> None:
    done = run("eval", "original", "--gold", "openpi:test", "--pred", "openpi:gpt2-test", "--json")
    assert rows(done, "f1", 2) == [4.24, 16.07, 32.38]
    assert rows(done, "precision", 2) == [10.44, 24.43, 41.10]
    assert rows(done, "recall", 2) == [6.53, 17.67, 33.78]
    low, high = done.json["intervals"]["bleu"]["f1"]
    assert low < 16.07 < high
    assert (done.json["steps"], done.json["procedures"], done.json["warnings"]) == (560, 111, [])
    assert "BART + EMem + ECond" in {one["system"] for one in done.json["published"]}


@pytest.mark.usefixtures("mirror")
@pytest.mark.parametrize(
    ("arguments", "column", "expected"),
    [
        ("schemata --gold openpi2:dev --pred openpi2-outputs:davinci-schemata", "f1", [36.2, 45.0, 13.0, 15.5]),
        ("schemata --gold openpi2:dev --pred openpi2-outputs:gpt-3.5-schemata", "f1", [15.2, 25.2, 4.6, 7.2]),
        ("states --gold openpi2:ranked-dev --pred openpi2-outputs:davinci-states", "accuracy", [19.9, 22.5]),
        ("states --gold openpi2:ranked-dev --pred openpi2-outputs:gpt-3.5-states", "accuracy", [7.4, 8.3]),
        ("complete --gold openpi2:dev --pred openpi2-outputs:davinci-sentences", "f1", [3.4, 3.9]),
        ("complete --gold openpi2:dev --pred openpi2-outputs:gpt-3.5-sentences", "f1", [1.6, 1.9]),
    ],
)
def test_openpi2_to_the_last_digit(run: Run, arguments: str, column: str, expected: list[float]) -> None:
    assert rows(run("eval", *arguments.split(), "--json"), column) == expected


@pytest.mark.usefixtures("mirror")
@pytest.mark.parametrize(
    ("arguments", "row", "expected"),
    [
        ("clustering", "exact", {"recall": 42.5, "precision": 59.3, "f1": 49.5}),
        ("clustering --level attributes", "exact", {"recall": 88.1, "precision": 90.6, "f1": 89.3}),
        ("crepe --gold crepe:dev --pred crepe:codex-events", "macro", {"f1": 58.5}),
        ("crepe --gold crepe:dev --pred crepe:codex-entities", "macro", {"f1": 66.7}),
        ("salience --gold openpi2:dev --pred openpi2:dev --rater A2", "global smoothed", {"r": 0.759}),
        ("salience --gold openpi2:dev --pred openpi2:dev --rater gpt-4", "local smoothed", {"r": 0.668}),
    ],
)
def test_the_other_tasks_to_the_last_digit(run: Run, arguments: str, row: str, expected: dict[str, float]) -> None:
    found = run("eval", *arguments.split(), "--json").json["scores"][row]
    digits = 3 if "r" in expected else 1
    assert {column: round(found[column], digits) for column in expected} == expected


@pytest.mark.usefixtures("mirror")
def test_the_table_has_scores_signature_and_published_systems(run: Run) -> None:
    done = run("eval", "original", "--gold", "openpi:test", "--pred", "openpi:gpt2-test", "--by", "seen", "--errors")
    assert "32.38 [" in done.out
    assert "metric:original|mode:compat|matchers:exact+bleu+rouge|avg:macro|data:" in done.out
    assert "BART large" in done.out
    assert "15.67" in done.out, "unseen"
    assert "2020 paper" in done.out
    assert done.err == ""


# What a score is shown with


def test_worst_steps_side_by_side_and_errors(run: Run, gold: Path, tmp_path: Path) -> None:
    said = answer_file(tmp_path / "said.jsonl", ((key, [heat("hot"), "[red]\x1b[31m"]) for key in STEPS))
    done = run("eval", "original", "--gold", gold, "--pred", said, "--worst", "1", "--errors")
    assert "= heat of pot was cold before and hot afterwards" in done.out
    assert "[red]" in done.out, "a model's words are no markup"
    assert "\x1b[31m" not in done.out
    values = run("eval", "original", "--gold", gold, "--pred", said, "--worst", "2", "--errors", "--json").json
    assert len(values["worst"]) == 2
    assert values["errors"]["scores"]["not readable"]["share"] == 100


def test_breakdowns_and_their_limits(run: Run, gold: Path) -> None:
    parts = run("eval", "original", "--gold", gold, "--pred", gold, "--by", "position", "--json").json["by"]
    assert {name: part["scores"]["exact"]["f1"] for name, part in parts.items()} == {"1": 100, "2": 100}
    assert "no topics" in run("eval", "original", "--gold", gold, "--pred", gold, "--by", "topic").err
    done = run("eval", "schemata", "--gold", gold, "--pred", gold, "--by", "mentioned")
    assert (done.status, "Invalid value for '--by'" in done.err) == (2, True)


def test_parts_of_enough_procedures_have_intervals(run: Run, tmp_path: Path) -> None:
    steps = {f"{name}||{step}": [heat("hot")] for name in "abcdefghijkl" for step in ((1, 2) if name < "d" else (1,))}
    gold = answer_file(tmp_path / "gold.jsonl", steps.items())
    said = answer_file(tmp_path / "said.jsonl", ((key, [heat("hot" if key < "e" else "red")]) for key in steps))
    parts = run("eval", "original", "--gold", gold, "--pred", said, "--by", "position", "--json").json["by"]
    assert {name: part["procedures"] for name, part in parts.items()} == {"1": 12, "2": 3}
    low, high = parts["1"]["intervals"]["exact"]["f1"]
    assert low < parts["1"]["scores"]["exact"]["f1"] < high
    assert "intervals" not in parts["2"]
    assert "fewer than 10" in run("eval", "original", "--gold", gold, "--pred", said, "--by", "position").out


def test_cluster_takes_a_threshold_and_says_so(run: Run, gold: Path) -> None:
    done = run("eval", "cluster", "--gold", gold, "--pred", gold, "--threshold", "0.5", "--mode", "strict", "--json")
    assert "embedder:wordllama-256|threshold:0.5|" in done.json["signature"]
    assert done.json["scores"]["exact"]["f1"] == 100
    unknown = run("eval", "cluster", "--gold", gold, "--pred", gold, "--embedder", "nobody/knows")
    assert (unknown.status, "no default threshold" in unknown.err) == (2, True)


def test_compare_tests_the_difference(run: Run, gold: Path, tmp_path: Path) -> None:
    worse = answer_file(tmp_path / "worse.jsonl", ((key, [heat("hot")]) for key in STEPS))
    values = run("eval", "compare", gold, worse, "--gold", gold, "--json").json
    difference = values["differences"]["exact"]["f1"]
    assert difference["value"] == pytest.approx(values["a"]["exact"]["f1"] - values["b"]["exact"]["f1"])
    assert 0 < difference["p_randomisation"] <= 1
    assert values["names"] == {"a": str(gold), "b": str(worse)}
    table = run("eval", "compare", gold, worse, "--gold", gold, "--metric", "cluster")
    assert "p (randomisation)" in table.out
    assert "metric:cluster" in table.out
    assert run("eval", "compare", gold, worse, "--gold", gold, "--metric", "salience").status == 2
    ignored = run("eval", "compare", gold, worse, "--gold", gold, "--threshold", "0.5")
    assert (ignored.status, "--threshold works only with --metric cluster" in ignored.err) == (2, True)


def test_agreement_of_raters_from_two_files(run: Run, tmp_path: Path) -> None:
    def rated(rater: str, *values: float) -> Path:
        path = tmp_path / f"{rater}.jsonl"
        ratings = [Salience(entity=f"e{n}", rater=rater, value=value) for n, value in enumerate(values)]
        jsonl.write([Trace(procedure=Procedure(id="tea", steps=("Pour.",)), salience=tuple(ratings))], path)
        return path

    gold, pred = rated("A1", 1, 3, 5), rated("mine", 1.2, 3, 4)
    values = run("eval", "agreement", "--gold", gold, "--pred", pred, "--json").json
    assert values["scores"]["agreement"]["share"] == pytest.approx(2 / 3)
    assert "raters:A1+mine" in values["signature"]
    alone = run("eval", "agreement", "--gold", gold, "--raters", "A1,A2")
    assert (alone.status, "no salience ratings by 'A2'" in alone.err) == (2, True)


@pytest.mark.usefixtures("mirror")
def test_released_judgements(run: Run) -> None:
    counts = [row["count"] for row in run("eval", "judgements", "davinci", "--json").json["scores"].values()]
    assert counts == [317, 106, 14, 143]
    assert "83.28 [" in run("eval", "judgements", "expansions").out


def test_a_form_for_hallucinations_there_and_back(run: Run, gold: Path, tmp_path: Path) -> None:
    form = tmp_path / "form.csv"
    assert "wrote 12 changes" in run("eval", "judgements", gold, "--form", form).err
    answered = [line + "no" if line.endswith(",") else line for line in form.read_text(encoding="utf-8").splitlines()]
    form.write_text("\n".join(answered), encoding="utf-8")
    assert run("eval", "judgements", form, "--json").json["scores"]["hallucinated"] == {"count": 0, "share": 0}
    assert "expansions" in run("eval", "judgements", "nothing").err


def test_bertscore_with_an_encoder_that_is_not_there(run: Run, gold: Path, tmp_path: Path) -> None:
    done = run("eval", "bertscore", "--gold", gold, "--pred", gold, "--of", "states", "--scope", "local")
    assert (done.status, "--scope works only with --of schemata" in done.err) == (2, True)
    done = run("eval", "bertscore", "--gold", gold, "--pred", gold, "--encoder", tmp_path)
    assert (done.status, "Traceback" in done.err) == (2, False)


@pytest.mark.parametrize("command", [getattr(one.callback, "__name__", "") for one in app.registered_commands])
def test_the_help_of_every_command_has_an_example(run: Run, command: str) -> None:
    assert f"Example: fluents eval {command}" in " ".join(run("eval", command, "--help").out.split())


# What is wrong with the files


def without(*keys: str) -> dict[str, list[str]]:
    return {key: said for key, said in STEPS.items() if key not in keys}


WRONG: dict[str, tuple[list[tuple[str, list[str]]], str]] = {
    "wrong ids": (
        [(f"www.x.org/z||{number}", []) for number in range(1, 5)],
        "4 predictions without a gold step: www.x.org/z||1, www.x.org/z||2, www.x.org/z||3 and 1 more",
    ),
    "a missing step": (
        list(without("www.x.org/b||2").items()),
        "no prediction for 1 of 6 gold steps: www.x.org/b||2",
    ),
    "a duplicated step": (
        [*STEPS.items(), ("www.x.org/a||2", [heat("hot")])],
        "these ids occur in several predictions: www.x.org/a||2",
    ),
    "an empty file": ([], "there are no predictions"),
    "another split": (
        [(f"www.y.org/other||{number}", [heat("hot")]) for number in range(1, 3)],
        "no prediction for 6 of 6 gold steps: www.x.org/a||1, www.x.org/a||2, www.x.org/b||1 and 3 more",
    ),
}


@pytest.mark.parametrize("metric", ["original", "cluster"])
@pytest.mark.parametrize("case", WRONG)
def test_strict_refuses_and_names_the_first_offenders_compat_warns(
    run: Run, gold: Path, tmp_path: Path, metric: str, case: str
) -> None:
    steps, message = WRONG[case]
    said = answer_file(tmp_path / "said.jsonl", steps)
    arguments = ("eval", metric, "--gold", gold, "--pred", said)
    strict = run(*arguments, "--mode", "strict")
    assert (strict.status, strict.out) == (2, "")
    assert message in strict.err
    assert "fix:" in strict.err
    compat = run(*arguments, "--json")
    assert compat.status == 0
    assert message in compat.err
    assert any(message in warning for warning in compat.json["warnings"])


def test_of_two_lists_for_one_step_compat_takes_the_last(run: Run, gold: Path, tmp_path: Path) -> None:
    said = answer_file(tmp_path / "said.jsonl", [("www.x.org/a||1", ["nonsense"]), *STEPS.items()])
    assert run("eval", "original", "--gold", gold, "--pred", said, "--json").json["scores"]["exact"]["f1"] == 100


@pytest.mark.parametrize("metric", ["schemata", "states", "complete"])
def test_whole_procedures_that_are_missing(run: Run, gold: Path, tmp_path: Path, metric: str) -> None:
    said = answer_file(tmp_path / "said.jsonl", without("www.x.org/b||1", "www.x.org/b||2").items())
    strict = run("eval", metric, "--gold", gold, "--pred", said, "--mode", "strict")
    assert strict.status == 2
    assert "no prediction for 1 of 3 gold procedures: www.x.org/b" in strict.err
    compat = run("eval", metric, "--gold", gold, "--pred", said)
    assert (compat.status, "no prediction" in compat.err) == (0, True)


def test_other_mistakes_end_with_status_2(run: Run, gold: Path, tmp_path: Path) -> None:
    empty = answer_file(tmp_path / "empty.jsonl", [])
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(b'{"id": "www.x.org/a||1", "answers": [\xff\n')
    for arguments, message in (
        (("original", "--gold", empty, "--pred", gold), "the gold contains no step"),
        (("original", "--gold", gold, "--pred", broken), str(broken)),
        (("original", "--gold", gold, "--pred", tmp_path / "none"), "no such file or dataset"),
        (("original", "--gold", gold, "--pred", gold, "--mode", "loose"), "Invalid value for '--mode'"),
        (("original", "--gold", gold, "--pred", gold, "--matchers", "chrf"), "unknown matcher 'chrf'"),
        (("crepe", "--gold", gold, "--pred", gold), "not CREPE data"),
        (("clustering", "--gold", gold, "--pred", gold), "no clusters"),
        (("clustering", "--level", "verbs"), "Invalid value for '--level'"),
        (("salience", "--gold", gold, "--pred", gold), "no procedure is rated by both"),
    ):
        done = run("eval", *arguments)
        assert (done.status, done.out) == (2, ""), arguments
        assert message in done.err, arguments


def test_one_procedure_has_no_interval(run: Run, tmp_path: Path) -> None:
    one = answer_file(tmp_path / "one.jsonl", [("p||1", [heat("hot")])])
    done = run("eval", "original", "--gold", one, "--pred", one)
    assert "100.00" in done.out
    assert "[" not in done.out


# Memory


SIZES = 600, 1800
"""The smaller is more than two of the blocks that the cluster metric embeds together."""


def write_traces(path: Path, count: int) -> Path:
    change = StateChange(step=1, entity="pot", attribute="heat", before="cold", after="o" * 2000)  # one long word
    traces = (Trace(procedure=Procedure(id=f"p{n}", steps=("Boil.",)), changes=(change,) * 4) for n in range(count))
    jsonl.write(traces, path)
    return path


def peak_memory(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("metric", ["original", "cluster"])
def test_scoring_streams(metric: Metric, tmp_path: Path) -> None:
    """Peak memory grows with the steps' statistics, not with what the files say."""
    small, large = (write_traces(tmp_path / f"{count}.jsonl", count) for count in SIZES)
    copies = {path: shutil.copy(path, tmp_path / f"copy of {path.name}") for path in (small, large)}

    def score(path: Path) -> object:
        return score_by(metric, path, copies[path], mode="strict")

    score(small)  # fills the caches
    growth = peak_memory(lambda: score(large)) - peak_memory(lambda: score(small))
    added = large.stat().st_size - small.stat().st_size
    assert growth < added / 8, (growth, added)


def test_a_list_of_everything_would_not_pass_for_streaming(tmp_path: Path) -> None:
    """The measurement above can fail: a scorer that holds the file is seen."""
    small, large = (write_traces(tmp_path / f"{count}.jsonl", count) for count in SIZES)

    def score(path: Path) -> object:
        held = list(jsonl.read(path))
        return score_by("original", held, held)

    score(small)
    growth = peak_memory(lambda: score(large)) - peak_memory(lambda: score(small))
    assert growth > (large.stat().st_size - small.stat().st_size) / 8
