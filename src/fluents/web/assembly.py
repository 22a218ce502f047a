"""What every application of ours has around its API: the page, errors as people should see them, and the guard."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, PackageLoader
from starlette.exceptions import HTTPException

from fluents.errors import FluentsError
from fluents.version import __version__
from fluents.web.guard import Guard, GuardRules, RefusedError
from fluents.web.resources import ErrorAnswer
from fluents.web.validation_errors import explained

STATIC = Path(str(resources.files("fluents.web") / "static"))
ABOUT: Mapping[str, Any] = {
    "title": "fluents",
    "version": __version__,
    "openapi_url": "/api/v1/openapi.json",
    "docs_url": None,  # FastAPI's own page loads its scripts from a third party
    "redoc_url": None,
}
"""What an application of ours is called, and where its schema is."""


def assembled(
    app: FastAPI, rules: GuardRules, statuses: Mapping[type[FluentsError], int], pages: Mapping[str, str]
) -> Guard:
    """The application with all that. `statuses` are those of errors that a user can fix, where it is not 422; `pages`
    are files by their paths."""

    def fluents_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, FluentsError)
        status = next((status for kind, status in statuses.items() if isinstance(error, kind)), 422)
        return _answer(status, error.what, error.where, error.fix)

    app.add_exception_handler(FluentsError, fluents_error)
    app.add_exception_handler(RefusedError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _bug)
    # Routes of Starlette, and not of FastAPI: these answer HEAD as well.
    app.add_route("/api", lambda _: HTMLResponse(_api_page(app)), include_in_schema=False)
    static = _Static(directory=STATIC, packages=[("fluents.report", "assets")])  # the style of traces is the page's
    app.mount("/static", static, name="static")
    for path, file in pages.items():
        app.add_route(path, _page(static, file), include_in_schema=False)
    return Guard(app, rules)


def _page(static: StaticFiles, file: str) -> Any:
    async def page(request: Request) -> Response:
        return await static.get_response(file, request.scope)

    return page


class _Static(StaticFiles):
    """Files of the page, asked for again each time: an upgrade must not meet yesterday's scripts."""

    async def get_response(self, path: str, scope: Any) -> Response:
        answer = await super().get_response(path, scope)
        answer.headers["Cache-Control"] = "no-cache"
        return answer


def _api_page(app: FastAPI) -> str:
    """The API for people, made from its schema."""
    loader = PackageLoader("fluents.web", "templates")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True)
    schema = app.openapi()
    operations = [
        {"method": method.upper(), "path": path, **operation}
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    shapes = schema["components"]["schemas"]
    return environment.get_template("api.html").render(
        schema=schema, operations=operations, shapes=shapes, shape=_shape
    )


def _shape(schema: Mapping[str, Any]) -> str:
    """A JSON Schema in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return repr(schema["const"])
    if "enum" in schema:
        return " | ".join(map(repr, schema["enum"]))
    if "anyOf" in schema:
        return " | ".join(map(_shape, schema["anyOf"]))
    if schema.get("type") == "array":
        return f"[{_shape(schema.get('items', {}))}]"
    return str(schema.get("format") or schema.get("type") or "any")


# Errors


def _answer(status: int, what: str, where: str | None = None, fix: str | None = None) -> JSONResponse:
    return JSONResponse(ErrorAnswer(error=what, where=where, fix=fix).model_dump(), status)


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return _answer(error.status, error.error, fix=error.fix)


def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return _answer(422, *explained(error.errors()[0]))


def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse(
        ErrorAnswer(error=str(error.detail)).model_dump(), error.status_code, headers=dict(error.headers or {})
    )


def _bug(_: Request, error: Exception) -> Response:
    """Told without its words, which may repeat what somebody sent; the log has them."""
    fix = "look for the details in the output of the server, and report them"
    return _answer(500, f"internal server error: {type(error).__name__}", fix=fix)
