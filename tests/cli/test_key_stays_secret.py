"""A whole run of the command against an endpoint that repeats all it is sent: the key is in nothing that is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from faulty_server import FaultyServer

KEY = "sk-grep-for-me-fedcba9876543210"
RECIPE = "Make tea\n\n1. Boil the water.\n2. Pour the water over the tea leaves.\n"


@pytest.mark.parametrize("status", [200, 401])
def test_the_key_is_in_no_trace_cache_or_message(tmp_path: Path, status: int) -> None:
    (tmp_path / "tea.txt").write_text(RECIPE)
    key_file = tmp_path / "key"
    key_file.write_text(KEY)
    with FaultyServer(lambda body: "") as server:  # noqa: ARG005
        server.answer = lambda body: json.dumps({server.headers[-1]["authorization"]: ["heat"]})  # noqa: ARG005
        if status != 200:
            server.refuse = lambda body: (status, {"error": {"message": str(server.headers)}})  # noqa: ARG005
        options = {
            "--form": "schemata",
            "--base-url": server.base_url,
            "--model": "any",
            "--key-file": str(key_file),
            "--retries": "0",
            "--output": "tea.jsonl",
        }
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "fluents",
                "track-llm",
                "tea.txt",
                *(part for pair in options.items() for part in pair),
            ],
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, "FLUENTS_CACHE": str(tmp_path / "cache"), "OPENAI_LOG": "debug"},
            timeout=120,
        )
        assert server.headers[0]["authorization"] == f"Bearer {KEY}", "it was sent"
    assert done.returncode == (0 if status == 200 else 2), done.stderr
    assert KEY.encode() not in done.stdout + done.stderr
    key_file.unlink()
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) >= 2
    assert [file for file in files if KEY.encode() in file.read_bytes()] == []
    if status == 200:
        assert b"[key]" in (tmp_path / "tea.jsonl").read_bytes(), "the answer is in the trace, without it"
