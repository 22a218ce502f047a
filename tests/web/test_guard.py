"""What is refused before anything else: other sites, other names, too much, too slow, too deep."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

from served import Client, replaying, served
from soup import TEXT

from fluents.errors import InputError
from fluents.web import server
from fluents.web.guard import GuardRules, digest, read_tokens
from fluents.web.server import check_host

TOKEN = "correct-horse-battery-staple"


def _raw(client: Client, request: bytes) -> bytes:
    """What a server answers to these very bytes, until it closes the connection."""
    port = urlsplit(str(client.base_url)).port
    with socket.create_connection(("127.0.0.1", port or 0), timeout=60) as connection:
        connection.sendall(request)
        found = b""
        while part := connection.recv(65536):
            found += part
    return found


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "[", "10.0.0.1"])
def test_a_name_that_somebody_pointed_here_is_refused(client: Client, host: str) -> None:
    answer = client.get("/api/v1/health", headers={"Host": host})
    assert answer.status_code == 403
    assert client.get("/", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "[::1]:8765", "LOCALHOST:80"])
def test_our_own_names_are_let_in(client: Client, host: str) -> None:
    assert client.get("/api/v1/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},  # another program on this machine
        {"Origin": "https://127.0.0.1.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_another_site_writes_nothing(client: Client, method: str, headers: dict[str, str]) -> None:
    path = {"POST": "/api/v1/documents"}.get(method, f"/api/v1/documents/{'0' * 16}")
    answer = client.request(method, path, json={"text": TEXT}, headers=headers)
    assert answer.status_code == 403
    assert client.get("/api/v1/documents", headers=headers).headers.get("access-control-allow-origin") is None


def test_our_own_page_writes(client: Client) -> None:
    headers = {"Origin": str(client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/v1/segment", json={"text": TEXT}, headers=headers).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"])
def test_what_a_form_of_another_site_could_send_is_not_json(client: Client, kind: str) -> None:
    answer = client.post("/api/v1/segment", content=json.dumps({"text": TEXT}), headers={"Content-Type": kind})
    assert answer.status_code == 422


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1/health", "/api/v1/nothing", "/static/api.css", "/nothing"])
def test_every_answer_tells_the_browser_what_it_may_do(client: Client, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "server" not in headers


def test_html_in_every_field_stays_text(client: Client) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    document = client.document(f"{hostile} Boil water.", goal=hostile, name=hostile)
    answer = client.get(f"/api/v1/documents/{document['id']}")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["goal"] == hostile
    error = client.get(f"/api/v1/{hostile}")
    assert error.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../application.py",
        "/static/%2e%2e/application.py",
        "/static/..%2f..%2fcli/web.py",
        "/static/%2fetc/passwd",
        "//etc/passwd",
        "/static/..\\application.py",
        "/static/%00",
        "/api/v1/documents/../../../etc/passwd",
        "/api/v1/documents/%00000000000000000",
    ],
)
def test_no_path_leads_out_of_the_folder(client: Client, path: str) -> None:
    answer = _raw(client, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    assert int(answer.split()[1]) in (400, 404, 422)
    assert b"root:" not in answer
    assert b"import" not in answer


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"nul",
        b'{"text": "\xff"}',
        b'{"text": "\\ud800"}',
        b'{"text": NaN}',
        b"[]",
        b'{"text": 1}',
        b"9" * 5000,
        b'{"text":' * 20_000,
        b"[" * 200_000,
    ],
)
def test_malformed_json_is_the_clients_fault(client: Client, content: bytes) -> None:
    answer = client.post("/api/v1/segment", content=content, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500
    assert answer.json()["error"]


def test_too_large_a_body_is_refused_whether_or_not_its_length_is_told(client: Client) -> None:
    large = b"x" * (GuardRules().body_bytes + 1)
    for content in (large, iter([large[:1000], large])):
        try:
            answer = client.post("/api/v1/documents/upload", content=content)
        except OSError:  # refused so early that the rest could not be sent
            continue
        assert answer.status_code == 413
    head = b"POST /api/v1/segment HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n"
    assert b"413" in _raw(client, head % 10**12).splitlines()[0]


@pytest.mark.parametrize("lines", [b"Host: 127.0.0.1\r\nHost: evil.example", b"Host: 127.0.0.1\r\nContent-Length: -1"])
def test_ambiguous_heads_are_refused(client: Client, lines: bytes) -> None:
    answer = _raw(client, b"POST /api/v1/segment HTTP/1.1\r\n" + lines + b"\r\nConnection: close\r\n\r\n")
    assert answer.split()[1] == b"400"


def test_slow_clients_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.ImpatientProtocol, "patience", 0.2)
    monkeypatch.setattr(server, "KEEP_ALIVE", 1)
    settings = replaying(tmp_path)
    rules = replace(settings.rules, read_seconds=0.2)
    with served(tmp_path / "web.sqlite", settings, rules=rules) as client:
        assert _raw(client, b"GET /api/v1/health HT") == b""
        assert _raw(client, b"") == b""
        body = b"POST /api/v1/segment HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{"
        assert b"408" in _raw(client, body).splitlines()[0]
        whole = b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        assert _raw(client, whole + b"GET /api").count(b"HTTP/1.1") == 1  # the second never came


def test_with_tokens_nothing_is_told_without_one(tmp_path: Path) -> None:
    settings = replaying(tmp_path)
    rules = replace(settings.rules, tokens=frozenset({digest(TOKEN)}))
    with served(tmp_path / "web.sqlite", settings, rules=rules) as client:
        for path in ("/documents", "/jobs", "/backup", "/search", "/openapi.json", f"/traces/{'0' * 16}"):
            assert client.get(f"/api/v1{path}").status_code == 401
        assert client.call("GET", "/server")["signed_in"] is False
        assert client.get("/api/v1/documents", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert client.get("/api/v1/documents", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        client.call("POST", "/session", {"token": "wrong"}, status=401)
        answer = client.post("/api/v1/session", json={"token": TOKEN})
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert client.call("GET", "/documents")["total"] == 0
        client.call("DELETE", "/session", status=204)
        client.call("GET", "/documents", status=401)


def test_a_wider_bind_needs_tokens() -> None:
    for host in ("0.0.0.0", "::", "192.168.1.2", "example.org", ""):
        with pytest.raises(InputError, match="requires access tokens"):
            check_host(host, ())
        check_host(host, {"a"})
    for host in ("127.0.0.1", "::1", "localhost", "127.3.2.1"):
        check_host(host, ())


def test_tokens_are_kept_as_hashes_and_short_ones_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# mine\n{TOKEN}  # laptop\n\n")
    assert read_tokens(file) == {digest(TOKEN)}
    assert TOKEN not in repr(GuardRules(tokens=read_tokens(file)))
    for content in ("", "short"):
        file.write_text(content)
        with pytest.raises(InputError, match="16 characters"):
            read_tokens(file)
