"""The recipes are commands this program has, with the papers' numbers, and they run."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tiny_neural import gold, model_folder
from typer.testing import CliRunner

from fluents import jsonl
from fluents.cli import app

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.sh"))


def _parsed(line: str) -> tuple[str, dict[str, Any]]:
    """The command a line names, and its options as the command line reads them; nothing is run."""
    program, *words = shlex.split(line)
    assert program == "fluents"
    command: Any = typer.main.get_command(app)
    name = ""
    while hasattr(command, "commands"):
        name = words.pop(0)
        command = command.commands[name]
    return name, command.make_context(name, words).params


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: str(recipe.stem))
def test_a_recipe_trains_and_tracks_as_its_paper_says(recipe: Path) -> None:
    lines = recipe.read_text().splitlines()
    assert any("needs hub access; not run here" in line.lower() for line in lines)
    (_, trained), (tracker, tracked) = (_parsed(line) for line in lines if line.startswith("fluents"))
    assert (trained["epochs"], trained["learning_rate"], trained["batch"]) == (30, 5e-5, 8)
    assert tracker == "track-neural"
    assert tracked["checkpoint"] == str(trained["out"])
    assert tracked["beams"] == 4
    assert ("econd" in trained["system"]) == bool(tracked["first"])
    if recipe.stem == "openpi-gpt2":
        assert (trained["style"], tracked["top_p"]) == ("openpi", 0.9)


def test_every_system_of_the_papers_has_a_recipe() -> None:
    systems = {
        _parsed(line)[1]["system"]
        for recipe in RECIPES
        for line in recipe.read_text().splitlines()
        if "train neural" in line
    }
    assert systems == {"baseline", "concat-states", "emem", "econd", "emem+econd"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Deprecations inside torch and transformers are theirs to mend.
def test_the_recipes_run_on_tiny_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of every recipe, but for the model, the data and the number of epochs."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("accelerate", reason="neural systems: pip install 'fluents[train]'")
    import torch

    torch.set_num_threads(1)  # these models are too small for more
    monkeypatch.chdir(tmp_path)
    jsonl.write(gold()[:1], tmp_path / "gold.jsonl")
    for arch in ("bart", "gpt2"):
        model_folder(tmp_path / arch, arch)
    for recipe in sorted(RECIPES, key=lambda recipe: recipe.stem):  # a first stage has the shorter name
        for line in filter(lambda line: line.startswith("fluents"), recipe.read_text().splitlines()):
            line = re.sub(r"--arch (\w+) --download", r"--arch \1 --model \1 --from-scratch", line)
            line = re.sub(r"(--data|track-neural) openpi\S*", r"\1 gold.jsonl", line).replace(
                "--epochs 30", "--epochs 1"
            )
            done = CliRunner().invoke(app, shlex.split(line)[1:])
            assert done.exit_code == 0, done.output
        said = jsonl.read(tmp_path / "runs" / recipe.stem / "test.jsonl")
        assert [trace.id for trace in said] == [gold()[0].id], recipe
