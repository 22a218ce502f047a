"""The embedded model's base weights as a folder that the neural systems begin with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fluents.cli import app
from fluents.errors import InputError

if os.environ.get("CI") != "true":
    pytest.importorskip("torch", reason="training: pip install 'fluents[train]'")


OFFLINE = """
import json, socket, sys
from pathlib import Path

asked = []

def refused(*address, **_):
    asked.append(repr(address))
    raise OSError("the network was asked")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refused

from fluents.neural.checkpoint import begin
from fluents.training.base_model import write_folder

base, folder = sys.argv[1:]
write_folder(Path(base), Path(folder))
begin(folder, "econd", "openpi-c", arch="llama", from_scratch=False, seed=1, download=False)
print(json.dumps(asked))
"""
"""Libraries get over a refused connection: what was asked is written down."""


def _written(base: Path, folder: Path) -> None:
    """Write the folder where nothing but our own code says that the network is not to be asked; see that it is not."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_OFFLINE")}
    command = [sys.executable, "-c", OFFLINE, str(base), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # deprecations inside torch and transformers are theirs to mend
def test_the_folder_has_the_models_tokens_and_words_and_nobody_else_is_asked(
    real_weights: Path, tmp_path: Path
) -> None:
    """The tokens are those the embedded model is read with, digits parted; the likeliest word is a sensible one."""
    import torch

    from fluents.neural.checkpoint import begin
    from fluents.training.base_model import encode, end_token, load_tokenizer

    _written(real_weights, tmp_path)
    trained = begin(str(tmp_path), "econd", "openpi-c", arch="llama", from_scratch=False, seed=1, download=False)
    theirs = load_tokenizer(real_weights)
    assert trained.codec.end == [end_token(theirs)]
    for text in ("Add 125 g of flour, stir 3 times.", "It\u2019s 20\u00b0C <b>hot</b> \u6570", " a  b"):
        assert trained.codec.plain(text) == encode(theirs, text)
        assert trained.codec.text(trained.codec.plain(text)) == text.strip()
    ids = torch.tensor([trained.codec.plain("The capital of France is")])
    with torch.no_grad():
        likeliest = trained.network.model(input_ids=ids).logits[0, -1].argmax()
    assert trained.codec.text([int(likeliest)]) == "Paris"


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    result = CliRunner().invoke(app, ["weights", "export", "--out", str(tmp_path)])
    assert isinstance(result.exception, InputError)
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]
