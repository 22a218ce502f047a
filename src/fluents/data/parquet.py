"""Traces as Parquet: one row per trace, with the fields of our JSONL as nested columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from types import UnionType
from typing import IO, Any, Union, get_args, get_origin

from pydantic import BaseModel

from fluents.errors import MissingExtraError
from fluents.jsonl import wrong_shape_is_input_error
from fluents.records import Trace

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    raise MissingExtraError("pyarrow", "data") from None


def write(traces: Iterable[Trace], stream: IO[bytes]) -> None:
    rows = [_plain(trace, Trace) for trace in traces]
    with wrong_shape_is_input_error("a number is too large for Parquet", "the records"):
        table = pa.Table.from_pylist(rows, schema=pa.schema(list(_struct(Trace))))
    pq.write_table(table, stream, compression="zstd", write_page_checksum=True)


def read(stream: IO[bytes], where: str) -> Iterator[Trace]:
    with wrong_shape_is_input_error("this file is not a Parquet file with traces", where):
        rows = pq.read_table(stream, page_checksum_verification=True).to_pylist()
    for row in rows:
        yield from_row(row, where)


def from_row(row: dict[str, Any], where: str) -> Trace:
    """The trace in a row."""
    with wrong_shape_is_input_error("this row is not a trace", where):
        return Trace.model_validate(_back(row, Trace))


def _struct(model: type[BaseModel]) -> Any:
    return pa.struct([(name, _type(field.annotation)) for name, field in model.model_fields.items()])


def _type(annotation: Any) -> Any:
    """The Parquet type of a field; free-form objects are stored as JSON text."""
    inner = _inner(annotation)
    if isinstance(inner, type) and issubclass(inner, BaseModel):
        return _struct(inner)
    if get_origin(inner) is tuple:
        return pa.list_(_type(get_args(inner)[0]))
    return {int: pa.int64(), float: pa.float64(), bool: pa.bool_()}.get(inner, pa.string())


def _inner(annotation: Any) -> Any:
    """The one type meant by an annotation, its "or None" and constraints taken off; int | float means float."""
    if get_origin(annotation) in (Union, UnionType):
        options = [option for option in get_args(annotation) if option is not type(None)]
        return float if float in options else _inner(options[0])
    if hasattr(annotation, "__metadata__"):
        return _inner(get_args(annotation)[0])
    return annotation


def _plain(record: BaseModel, model: type[BaseModel]) -> dict[str, Any]:
    return {name: _value(getattr(record, name)) for name in model.model_fields}


def _value(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _plain(value, type(value))
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    return json.dumps(value) if isinstance(value, dict) else value


def _back(row: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """A row without its nulls, free-form objects decoded: what the model validates."""
    values: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if row.get(name) is None:  # files written before the field was there have no such column
            values |= {name: None} if field.is_required() else {}
        else:
            values[name] = _back_value(row[name], _inner(field.annotation))
    return values


def _back_value(value: Any, kind: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _back(value, kind)
    if get_origin(kind) is tuple:
        return [_back_value(item, _inner(get_args(kind)[0])) for item in value]
    if get_origin(kind) is dict:
        return json.loads(value)
    return value
