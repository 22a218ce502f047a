"""How fluents was installed, and the command that installs it again, with an extra for instance."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname


def install_command(extra: str | None = None) -> str:
    """The pip command that installs fluents from where it came from: a folder, a file, a repository or a registry.

    >>> install_command("train")
    "pip install 'fluents[train]'"
    """
    found = shutil.which("pip")
    is_ours = found is not None and Path(found).parent == Path(sys.executable).parent  # it installs for this Python
    pip = "pip" if is_ours else f"{shlex.quote(sys.executable)} -m pip"
    return f"{pip} install {_source(extra)}"


def _source(extra: str | None) -> str:
    extras = f"[{extra}]" if extra else ""
    origin = _direct_url()
    address = origin.get("url", "")
    if not address:
        return shlex.quote(f"fluents{extras}")
    if urlsplit(address).scheme == "file":
        editable = "--editable " if origin.get("dir_info", {}).get("editable") else ""
        return editable + shlex.quote(f"{url2pathname(urlsplit(address).path)}{extras}")
    version = origin.get("vcs_info", {})
    if version:
        address = f"{version.get('vcs', 'git')}+{address}@{version.get('commit_id', 'HEAD')}"
    return shlex.quote(f"fluents{extras} @ {address}")


def _direct_url() -> dict[str, Any]:
    """What pip wrote down about the origin (PEP 610); empty if that is a registry."""
    checkout = Path(__file__).parents[2]
    try:
        text = distribution("fluents").read_text("direct_url.json")
    except PackageNotFoundError:  # run from a checkout
        is_checkout = (checkout / "pyproject.toml").is_file()
        return {"url": checkout.as_uri(), "dir_info": {"editable": True}} if is_checkout else {}
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
