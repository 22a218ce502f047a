"""The one root of every error fluents raises on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FluentsError(Exception):
    """Something the user can mend: says what is wrong, where, and what to do.

    The command line prints these without a traceback and exits with status 2.
    """

    def __init__(self, what: str, *, where: str | Path | None = None, fix: str | None = None) -> None:
        self.what = what
        self.where = None if where is None else str(where)
        self.fix = fix
        super().__init__(what, self.where, fix)

    def __str__(self) -> str:
        lines = [self.what]
        if self.where is not None:
            lines.append(f"  where: {self.where}")
        if self.fix is not None:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class InputError(FluentsError):
    """A file or a text that cannot be read as what it is said to be."""


class EmptyFileError(InputError):
    """A file that holds nothing at all."""


class UnknownNameError(FluentsError):
    """A dataset, split, shape or other name that fluents does not have."""


class DataMissingError(FluentsError):
    """A data file that is neither in the mirror nor in the cache."""


class ChecksumError(FluentsError):
    """A file whose content is not the one the catalogue names."""


class MissingExtraError(FluentsError):
    """A command that needs an optional part of the installation."""

    def __init__(self, package: str, extra: str) -> None:
        from fluents.installation import install_command  # slow to import, and seldom needed

        super().__init__(f"the package {package} is required, but not installed", fix=install_command(extra))


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Around imports that an optional part of the installation brings: says which part is missing."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(error.name or extra, extra) from None


class FluentsWarning(UserWarning):
    """Something that works but may not give what the user expects. The command line prints it as `warning: …`."""
