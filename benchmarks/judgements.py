"""What two blind judges said of the changes that `base` and `small` found, and of the reference annotation.

    python benchmarks/judgements.py            # shares of true, and of true or plausible, for each source
    python benchmarks/judgements.py 0.3        # of the changes with at least this confidence

The texts are in judged_procedures.txt, the judgements in judged_changes.tsv: T true, P plausible, F false.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

HERE = Path(__file__).parent
JUDGES = ("judge 1", "judge 2")


def main() -> None:
    least = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
    with (HERE / "judged_changes.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    text = (HERE / "judged_procedures.txt").read_text(encoding="utf-8")
    steps = sum(line[0].isdigit() for line in text.splitlines() if line)
    print(f"{'source':<12}{'changes':>8}{'a step':>8}" + "".join(f"{judge + ': T, T+P':>20}" for judge in JUDGES))
    for source in ("reference", "base", "small"):
        found = [row for row in rows if source in row["sources"].split(";") and _confidence(row, source) >= least]
        shares = "".join(f"{_share(found, judge, 'T'):14.1%}{_share(found, judge, 'TP'):6.0%}" for judge in JUDGES)
        print(f"{source:<12}{len(found):8}{len(found) / steps:8.2f}{shares}")
    same = sum(row["judge 1"] == row["judge 2"] for row in rows)
    print(f"the judges agree on {same / len(rows):.1%} of {len(rows)} changes")


def _confidence(row: dict[str, str], source: str) -> float:
    given = dict(part.split(" ") for part in row["confidence"].split(";") if part)
    return float(given.get(source, 1))


def _share(rows: list[dict[str, str]], judge: str, verdicts: str) -> float:
    return sum(row[judge] in verdicts for row in rows) / max(1, len(rows))


if __name__ == "__main__":
    main()
