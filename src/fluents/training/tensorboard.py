"""The curve of a run for TensorBoard, where that package is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fluents.errors import FluentsError

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError:
    raise FluentsError(
        "TensorBoard is not installed", fix="pip install tensorboard, or leave out `tensorboard`"
    ) from None


class TensorBoardReport:
    """A report that writes the figures of every epoch into a folder, and then reports on."""

    def __init__(self, folder: Path, report: Callable[[dict[str, Any]], None]) -> None:
        self.folder, self.report = folder, report
        self._writer: Any = None

    def __call__(self, event: dict[str, Any]) -> None:
        if "train_loss" in event:
            if self._writer is None:  # opened late: of several processes only the first has something to say
                self._writer = SummaryWriter(str(self.folder), purge_step=event["epoch"])
            for name, value in event.items():
                if isinstance(value, float):
                    self._writer.add_scalar(name, value, event["epoch"])
            self._writer.flush()
        self.report(event)
