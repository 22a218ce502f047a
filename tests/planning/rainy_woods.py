"""Rain that fills a pot nobody speaks of: OpenPI2.0's example of what salient states are good for, in our own words."""

from __future__ import annotations

from pathlib import Path

import fluents as fl

[TRACE] = fl.load(Path(__file__).parents[2] / "examples" / "rainy_woods.jsonl")
WANTED = "camper quenched"
