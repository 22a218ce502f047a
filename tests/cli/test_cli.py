"""The command line as a person meets it: a real process, its output, its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from fluents import __version__, cli, jsonl
from fluents.errors import FluentsWarning
from fluents.records import Procedure, StateChange, Trace

SOUP = Path(__file__).parents[2] / "examples" / "tomato_soup.md"


def run(*arguments: str | Path, stdin: str | bytes = b"", columns: int = 120) -> subprocess.CompletedProcess[str]:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [sys.executable, "-m", "fluents", *map(str, arguments)],
        input=data,
        capture_output=True,
        env=os.environ | {"COLUMNS": str(columns)},
        timeout=60,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def fails(*arguments: str | Path, stdin: str | bytes = b"") -> str:
    """Run what must end as a user's error: status 2, no traceback, nothing on standard output."""
    done = run(*arguments, stdin=stdin)
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr


def test_version_and_help() -> None:
    assert run("--version").stdout.strip() == __version__
    for command in ([], ["segment"], ["data"], ["data", "convert"]):
        assert run(*command, "--help").returncode == 0
    assert "Example" in run("data", "convert", "--help").stdout
    assert "JSONL: a text format" in run("--help").stdout
    assert "JSONL." in run("data", "convert", "--help").stdout.partition("Explained in fluents --help:")[2]


def test_the_help_of_track_is_one_screen() -> None:
    """Whoever asks for help with the main command sees its options together, even in a terminal of 80 columns."""
    shown = run("track", "--help", columns=80).stdout
    assert "-o, --output FILE" in shown
    assert "--json/--table" in shown
    assert len(shown.splitlines()) <= 75


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("track", "x", "--limit", "abc"), "'abc' is not a whole number"),
        (("track", "x", "--limit", "0"), "0 is less than 1"),
        (("track", "x", "--min-salience", "9"), "9 is more than 5"),
        (("track", "x", "--min-confidence", "x"), "'x' is not a number"),
        (("eval", "original", "--gold", "x", "--pred", "x", "--by", "mod"), "'--by': 'mod' is not one of 'topic'"),
    ],
)
def test_values_that_cannot_be_are_told_in_plain_words(arguments: tuple[str, ...], told: str) -> None:
    done = run(*arguments, columns=200)
    assert (done.returncode, told in done.stderr) == (2, True)
    assert "Input should" not in done.stderr


def test_help_names_values_and_shows_none_for_flags() -> None:
    told = run("track", "-h").stdout
    assert "<bool>" not in told
    assert "<str>" not in told
    assert "FILES" in told
    assert any(line.split()[1:4] == ["--strict", "Stop", "at"] for line in told.splitlines())
    assert "compat|strict" in run("eval", "original", "-h").stdout


def test_segment_gives_jsonl_to_a_pipe_and_a_view_on_request() -> None:
    piped = run("segment", SOUP)
    procedure = jsonl.loads(piped.stdout)
    assert isinstance(procedure, Procedure)
    assert (procedure.goal, len(procedure.steps)) == ("Make tomato soup", 6)
    view = run("segment", SOUP, "--table").stdout
    assert "Make tomato soup" in view
    assert "Season with salt" in view


def test_a_folder_is_its_texts_whatever_their_case_but_no_hidden_ones(tmp_path: Path) -> None:
    for name in ("B.TXT", "a.markdown"):
        (tmp_path / name).write_text(f"# {name}\n\n1. Boil the water.\n")
    (tmp_path / "._B.TXT").write_bytes(b"\x00\xff")  # as some systems leave them on shared disks
    goals = [json.loads(line)["goal"] for line in run("segment", tmp_path).stdout.splitlines()]
    assert goals == ["B.TXT", "a.markdown"]


@pytest.mark.parametrize(
    "options", [("segment", "-o"), ("track", "--model", "tiny", "-o"), ("track", "--model", "tiny", "--html")]
)
def test_a_text_is_never_written_over_by_what_is_made_of_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "tea.md").write_text("Boil the water.")
    (tmp_path / "link.md").symlink_to(tmp_path / "tea.md")
    command, *more = options
    assert "would overwrite this input" in fails(command, tmp_path / "tea.md", *more, tmp_path / "link.md")
    assert (tmp_path / "tea.md").read_text() == "Boil the water."


def test_traces_and_their_page_are_two_files(tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("1. Boil water.")
    same = tmp_path / "out", tmp_path / "." / "out"
    assert "the same file" in fails("track", tmp_path / "tea.md", "-o", same[0], "--html", same[1])


def test_an_output_inside_the_folder_that_is_read_is_no_input(tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("# Make tea\n\n1. Boil the water.\n")
    for _ in range(2):
        assert "wrote 1 record to" in run("segment", tmp_path, "-o", tmp_path / "all.jsonl").stderr


def test_broken_json_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("[1, 2")
    assert "broken.json" in fails("segment", tmp_path / "broken.json")


def test_a_shape_of_four_files_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "tea.jsonl").write_bytes(jsonl.dumps(Procedure(id="p", steps=("Boil.",))))
    for output in ("-", tmp_path / "tea.jsonl"):
        assert "consists of four files" in fails(
            "data", "convert", tmp_path / "tea.jsonl", "--to", "openpi", "-o", output
        )


def test_segment_reads_standard_input_json_and_another_goal(tmp_path: Path) -> None:
    text = run("segment", "-", "--goal", "Brew", stdin="Boil the water. Pour it over the leaves.")
    assert cast(Procedure, jsonl.loads(text.stdout)).goal == "Brew"
    api = run("segment", "-", stdin=json.dumps({"id": "1", "goal": "Tea", "steps": ["Boil."]}))
    assert jsonl.loads(api.stdout).id == "1"
    again = run("segment", "-", stdin=api.stdout)
    assert again.stdout == api.stdout, "our own format passes through"
    run("segment", SOUP, SOUP, "-o", tmp_path / "two.jsonl")
    assert [record.id for record in jsonl.read(tmp_path / "two.jsonl")] == ["make-tomato-soup", "make-tomato-soup-2"]


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"", "no step"), (b"caf\xe9 \xff", "UTF-8"), (b'{"id": "x", "goal": "g", "steps": [" "]}', "has no text")],
)
def test_segment_says_what_is_wrong_with_a_file(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "recipe.txt"
    path.write_bytes(content)
    message = fails("segment", path)
    assert what in message
    assert str(path) in message or not content


def test_segment_on_what_is_no_file(tmp_path: Path) -> None:
    assert "this folder contains no texts, web pages or JSON files" in fails("segment", tmp_path)
    assert "no such file" in fails("segment", tmp_path / "none.txt")


@pytest.mark.parametrize(
    "text", ["[Soup](x.html)\n\n1. Boil.\n2. Eat.", "[ ] Boil water\n[ ] Pour it", "{Soup}\n\nBoil."]
)
def test_a_text_that_begins_with_a_bracket_is_still_a_text(text: str) -> None:
    assert run("segment", "-", stdin=text).returncode == 0


def test_a_pipe_or_a_link_stays_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    run("segment", SOUP, "-o", tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "real.jsonl").is_file()
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    run("segment", SOUP, "-o", tmp_path / "pipe")
    assert b"tomato" in reader.communicate(timeout=10)[0]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("path", ["x" * 5000, "/dev/full", "/proc/self/mem"])
def test_what_the_system_refuses_is_said(tmp_path: Path, path: str) -> None:
    assert fails("segment", path) if path != "/dev/full" else fails("segment", SOUP, "-o", path)
    assert list(tmp_path.iterdir()) == []


def test_malformed_json_on_line_812_is_said_to_be_there(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    good = [jsonl.dumps(Procedure(id=f"p{n}", steps=("Boil.",))) for n in range(811)]
    path.write_bytes(b"\n".join([*good, b'{"fluents":1,"kind":"procedure","id":}']) + b"\n")
    assert f"{path}:812" in fails("data", "convert", path, "-o", tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_data_list_names_the_datasets() -> None:
    names = [row["name"] for row in json.loads(run("data", "list", "--json").stdout)]
    assert names[:4] == ["fluents", "openpi", "openpi-v1.1", "openpi-c"]
    assert "catalogue" not in run("data", "list", "--files").stderr


def test_data_convert_says_what_is_lost(tmp_path: Path) -> None:
    change = StateChange(step=1, entity="water", attribute="heat", before="cold", after="hot", votes=2)
    trace = Trace(procedure=Procedure(id="w/Tea", steps=("Boil.",)), changes=(change,))
    jsonl.write([trace], tmp_path / "in.jsonl")
    done = run("data", "convert", tmp_path / "in.jsonl", "--to", "openpi-c", "-o", tmp_path / "out.jsonl")
    assert (
        "no place for: procedure.goal, change.votes" in done.stderr.replace("\n", " ") or "change.votes" in done.stderr
    )
    assert json.loads((tmp_path / "out.jsonl").read_text())["answers"] == [["water", "heat", "cold", "hot"]]
    assert "'xml' is not one of" in fails("data", "convert", tmp_path / "in.jsonl", "--to", "xml", "-o", tmp_path / "x")


def test_data_show_steers_no_terminal(tmp_path: Path) -> None:
    """A step from a hostile file is shown, but neither as markup nor as a control sequence."""
    jsonl.write([Trace(procedure=Procedure(id="x", steps=("\x1b[2J[bold]hi[/bold]",)))], tmp_path / "in.jsonl")
    shown = run("data", "show", tmp_path / "in.jsonl", "--table").stdout
    assert "\x1b" not in shown
    assert "[bold]hi[/bold]" in shown
    assert "no procedure with the id 'y'" in fails("data", "show", tmp_path / "in.jsonl", "--id", "y")


def test_data_get_of_an_unknown_dataset() -> None:
    assert "propara" in fails("data", "get", "propara")


def test_a_missing_dataset_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLUENTS_DATA_MIRROR", raising=False)
    monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path))
    assert "fluents data get openpi" in fails("data", "show", "openpi:dev")


def test_an_unknown_dataset_is_told_with_all_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path))
    for command in ("get", "stats"):
        assert "openpi2-outputs" in fails("data", command, "opnpi")


def test_the_list_of_datasets_has_json_types_for_programs() -> None:
    row = json.loads(run("data", "list", "--json").stdout)[1]
    assert row["name"] == "openpi"
    assert row["splits"][:3] == ["train", "dev", "test"]
    assert row["here"] in (True, False)
    assert "train dev test" in run("data", "list").stdout


def test_data_stats_on_the_published_files(mirror: Path) -> None:  # noqa: ARG001
    rows = json.loads(run("data", "stats", "openpi-c", "--json").stdout)["openpi-c"]
    assert [row["counted"] for row in rows if row["what"] == "steps"] == [2403, 219, 345]
    assert "2,403" in run("data", "stats", "openpi-c").stdout


def test_a_page_that_cannot_be_written_is_told_before_anything_is_tracked(tmp_path: Path) -> None:
    told = fails("track", SOUP, "--model", "tiny", "--html", tmp_path / "no folder" / "soup.html")
    assert "cannot write the file" in told


def test_a_reader_that_goes_away_is_no_error(mirror: Path) -> None:  # noqa: ARG001
    command = f"{sys.executable} -m fluents data show openpi:train -n 600 --json | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith('{"fluents":1')
    assert done.stderr == ""


def test_interrupting_leaves_no_half_file(tmp_path: Path) -> None:
    """Ctrl-C while standard input is still open: nothing is written under the name asked for."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fluents", "data", "convert", "-", "-o", tmp_path / "out.jsonl"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    line = jsonl.dumps(Procedure(id="p", steps=("Boil.",)))
    process.stdin.write(line + b"\n")
    process.stdin.flush()
    while not list(tmp_path.iterdir()):  # until the writer has begun
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == b"interrupted\n"
    assert list(tmp_path.iterdir()) == []


def test_errors_of_the_library_name_flags_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["fluents", "eval", "cluster", "--gold", "a", "--pred", "b"])
    assert cli.with_flags("no threshold: give `threshold`, not `top`") == "no threshold: give --threshold, not --top"
    assert cli.with_flags("run `fluents data list`; `other` stays") == "run `fluents data list`; `other` stays"
    monkeypatch.setattr("sys.argv", ["fluents", "track", "soup.md", "--model", "any"])
    named = cli.with_flags("give `key_file`, or leave out `model`")
    assert named == "give --key-file of `fluents track-llm`, or leave out --model"


def test_segment_goes_on_past_a_bad_file_and_strict_stops(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"caf\xe9 \xff")
    (tmp_path / "b.md").write_text("# Make tea\n\n1. Boil the water.\n")
    done = run("segment", tmp_path)
    assert done.returncode == 1
    assert jsonl.loads(done.stdout).id == "make-tea"
    assert "a.md" in done.stderr
    assert "skipped 1 input" in done.stderr
    assert "a.md" in fails("segment", tmp_path, "--strict")


def test_warnings_name_flags_and_no_line_of_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["fluents", "track"])
    others: list[object] = []
    for category in (FluentsWarning, DeprecationWarning):
        cli._show_warning(lambda *_: others.append(category), "expect nonsense: give `model`", category, "file.py", 3)  # noqa: B023
    assert capsys.readouterr().err == "warning: expect nonsense: give --model\n"
    assert others == [DeprecationWarning]
