"""The REST API from end to end, with a server that repeats a trace: all the page does, it does by these."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("fastapi", reason="the web application: pip install 'fluents[web]'")

from served import Client, replaying, served
from soup import SOUP, STEPS, TEXT

from fluents import jsonl
from fluents.data.file_formats import load
from fluents.records import Trace

NOWHERE = "0" * 16
PAGE = "<html><body><h1>Tea</h1><ol><li>Boil water.<li>Add <b>tea</b>.</ol><script>alert(1)</script></body></html>"


def test_the_server_says_what_it_can_do(client: Client) -> None:
    assert client.call("GET", "/health")["status"] == "ok"
    info = client.call("GET", "/server")
    assert [one["name"] for one in info["trackers"]] == ["tiny", "small", "base", "replay"]
    assert (info["default_tracker"], info["needs_token"], info["signed_in"]) == ("replay", False, True)


def test_a_text_is_segmented_and_nothing_is_kept(client: Client) -> None:
    before = client.call("GET", "/documents")["total"]
    found = client.call("POST", "/segment", {"text": TEXT, "goal": "Soup"}, status=200)
    assert (found["goal"], found["steps"]) == ("Soup", list(STEPS))
    assert client.call("GET", "/documents")["total"] == before


def test_the_name_of_a_file_is_a_text_here(client: Client, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("Boil water.")
    found = client.document(str(tmp_path / "secret.txt"))
    assert "Boil" not in json.dumps(found)


def test_steps_are_corrected_and_the_text_stays(client: Client) -> None:
    document = client.document(TEXT, name="soup.md")
    path = f"/documents/{document['id']}"
    found = client.call("PATCH", path, {"goal": "Soup", "steps": ["Wash.", "Boil."]})
    assert (found["goal"], found["steps"], found["corrected"]) == ("Soup", ["Wash.", "Boil."], True)
    assert (found["text"], found["read_steps"], found["name"]) == (TEXT, list(STEPS), "soup.md")
    assert not client.call("PATCH", path, {})["corrected"]
    assert client.call("DELETE", path, status=204) is None
    assert client.call("GET", path, status=404)["error"] == "there is no document with this id"


def test_what_was_read_can_be_saved_after_a_correction(client: Client) -> None:
    """Also a heading that is a whole paragraph, and the longest step."""
    goal, long = "Make " + "very " * 80 + "good tea", "Boil " + "more " * 3990 + "water."
    document = client.document(f"# {goal}\n\n1. Warm the pot.\n2. {long}\n")
    steps = ["Wash the pot.", *document["steps"][1:]]
    assert (document["goal"], steps[1]) == (goal, long)
    found = client.call("PATCH", f"/documents/{document['id']}", {"goal": document["goal"], "steps": steps})
    assert (found["goal"], found["steps"]) == (goal, steps)
    assert client.document("Boil water.", goal=goal)["goal"] == goal


@pytest.mark.parametrize(
    ("goal", "step", "what", "fix"),
    [
        ("g" * 20_001, "Boil it.", "the goal has 20,001 characters", "shorten the goal"),
        ("Tea", "b" * 20_001, "step 2 has 20,001 characters", "split step 2 into several steps"),
    ],
)
def test_what_could_not_be_saved_is_not_read(client: Client, goal: str, step: str, what: str, fix: str) -> None:
    procedure = SOUP.procedure.replace(goal=goal, steps=("Warm the pot.", step))
    for record in (procedure, SOUP.replace(procedure=procedure, changes=SOUP.at(1))):
        content = jsonl.dumps(record) + b"\n"
        found = client.call("POST", "/documents/upload", params={"name": "t.jsonl"}, content=content, status=422)
        assert found["error"] == f"{what}, but at most 20,000 are allowed"
        assert (found["where"], found["fix"]) == ("t.jsonl, leek-soup", fix)
    text = f"# {goal}\n\n1. Warm the pot.\n2. {step}\n"
    for path in ("/segment", "/documents"):
        assert client.call("POST", path, {"text": text, "name": "tea.md"}, status=422)["where"] == "tea.md"


def test_changes_appear_step_by_step_and_then_there_is_a_trace(client: Client) -> None:
    document = client.document(TEXT)
    job = client.job(document)
    events = list(client.events(job))
    kept = [event for event in events if event.id is not None]
    assert [event.id for event in kept] == [f"{number}" for number in range(1, 8)]
    steps = [event.data for event in kept if event.kind == "step"]
    assert [(one["step"], one["text"], len(one["changes"])) for one in steps] == [
        (number, text, len(SOUP.at(number))) for number, text in enumerate(STEPS, start=1)
    ]
    assert all(event.kind == "progress" for event in events if event.id is None)
    done = kept[-1].data
    assert (done["state"], done["done"], done["steps"]) == ("done", 4, 4)
    view = client.call("GET", f"/traces/{done['trace']}")
    assert [one["entity"] for one in view["shown"]] == [change.entity for change in SOUP.changes]
    assert [one["position"] for one in view["shown"]] == list(range(6))
    assert all(one["salience"] is not None for one in view["shown"])
    assert [one["id"] for one in client.call("GET", f"/documents/{document['id']}")["traces"]] == [done["trace"]]


def test_a_client_that_comes_back_gets_what_it_missed_and_then_no_more(client: Client) -> None:
    job = client.tracked(TEXT)
    assert [event.id for event in client.events(job, after="5")] == ["6", "7"]
    answer = client.get(f"/api/v1/jobs/{job['id']}/events", headers={"Last-Event-ID": "7"})
    assert answer.status_code == 204
    for odd in ("-1", "x", "9" * 20, "²"):
        answer = client.get(f"/api/v1/jobs/{job['id']}/events", headers={b"Last-Event-ID": odd.encode()})
        assert answer.status_code in (200, 204)


def test_filters_leave_what_they_say(client: Client) -> None:
    trace = client.tracked(TEXT)["trace"]
    path = f"/traces/{trace}"

    def shown(query: str) -> list[str]:
        return [one["entity"] for one in client.call("GET", f"{path}?{query}")["shown"]]

    assert shown("min_confidence=0.8") == ["leeks", "leeks", "pot", "soup"]
    assert shown("min_support=0.6") == []
    assert len(set(shown("top=2"))) == 2
    assert shown("min_salience=0") == [change.entity for change in SOUP.changes]
    assert client.call("GET", f"{path}?min_confidence=2", status=422)["where"] == "query.min_confidence"


def test_a_correction_is_kept_beside_the_words_of_the_model(client: Client) -> None:
    trace = client.tracked(TEXT)["trace"]
    path = f"/traces/{trace}"
    words = {"entity": "leeks", "attribute": "colour", "before": "green", "after": "<b>golden</b>"}
    client.call("POST", f"{path}/corrections", {"verdict": "wrong", "position": 1})
    client.call("POST", f"{path}/corrections", {"verdict": "edited", "position": 2, "words": words})
    added = client.call("POST", f"{path}/corrections", {"verdict": "added", "step": 3, "words": words})
    assert added["position"] == 6
    view = client.call("GET", path)
    assert [one["verdict"] for one in view["shown"]] == [None, "wrong", "edited", None, None, None, "added"]
    assert (view["shown"][2]["after"], view["shown"][2]["corrected"]) == ("soft", words)
    assert len(client.call("GET", f"{path}/corrections")) == 3
    downloaded = client.get(f"/api/v1{path}/download").content
    corrected = jsonl.loads(downloaded)
    assert isinstance(corrected, Trace)
    assert [change.after for change in corrected.changes] == [
        "clean",
        "<b>golden</b>",
        "melted",
        "full",
        "<b>golden</b>",
        "boiling hot",
    ]
    model = jsonl.loads(client.get(f"/api/v1{path}/download?corrected=false").content)
    assert isinstance(model, Trace)
    assert model.changes == SOUP.changes
    assert client.call("GET", "/search?after=golden")["total"] == 2
    assert client.call("POST", f"{path}/corrections", {"verdict": "wrong", "position": 99}, status=422)["fix"]


def test_downloads_are_what_fluents_reads(client: Client, tmp_path: Path) -> None:
    path = f"/api/v1/traces/{client.tracked(TEXT)['trace']}/download"
    answers = {name: client.get(path, params={"format": name}) for name in ("jsonl", "csv", "html", "pddl")}
    for name, answer in answers.items():
        assert answer.headers["content-disposition"] == f'attachment; filename="leek-soup.{name}"'
    rows = list(csv.DictReader(io.StringIO(answers["csv"].text)))
    assert [row["entity"] for row in rows] == [change.entity for change in SOUP.changes]
    assert "Leek soup" in answers["html"].text
    assert "(define (domain" in answers["pddl"].text
    assert "(define (problem" in answers["pddl"].text
    (tmp_path / "down.jsonl").write_bytes(answers["jsonl"].content)
    assert load(tmp_path / "down.jsonl")[0].changes == SOUP.changes


@pytest.mark.parametrize("kind", ["tracked", "uploaded"])
@pytest.mark.parametrize("query", ["", "min_confidence=0.8", "min_support=0.5", "min_salience=1", "top=2"])
def test_a_filtered_download_has_what_the_page_shows(client: Client, kind: str, query: str) -> None:
    """Filters look at the words of the model, and what people added always stays: a person has no confidence."""
    if kind == "tracked":
        trace = client.tracked(TEXT)["trace"]
    else:
        content = jsonl.dumps(SOUP) + b"\n"
        uploaded = client.call("POST", "/documents/upload", params={"name": "soup.jsonl"}, content=content)
        trace = uploaded["traces"][0]["id"]
    path = f"/traces/{trace}"
    words = {"entity": "ladle", "attribute": "place", "before": "drawer", "after": "pot"}
    for position in (2, 3):  # the second is below the confidence that a filter wants
        given = {"verdict": "edited", "position": position, "words": words | {"entity": f"ladle{position}"}}
        client.call("POST", f"{path}/corrections", given)
    client.call("POST", f"{path}/corrections", {"verdict": "wrong", "position": 0})
    for entity in ("spoon", "fork"):
        given = {"verdict": "added", "step": 3, "words": words | {"entity": entity}}
        client.call("POST", f"{path}/corrections", given)
    client.call("POST", f"{path}/corrections", {"verdict": "withdrawn", "position": 7})
    shown = [one for one in client.call("GET", f"{path}?{query}")["shown"] if one["verdict"] != "wrong"]
    expected = [(one["corrected"] or one)["entity"] for one in sorted(shown, key=lambda one: one["step"])]
    answer = client.get(f"/api/v1{path}/download?format=csv&{query}")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["entity"] for row in rows if row["entity"]] == expected  # a step without changes has a row, too
    assert {"ladle2", "spoon"} <= {*expected}
    assert "fork" not in expected
    assert "ladle3" not in expected or query != "min_confidence=0.8"


def test_two_traces_are_compared(client: Client) -> None:
    first = client.tracked(TEXT)
    again = client.job({"id": first["document"]})
    *_, last = client.events(again)
    second = last.data["trace"]
    client.call("POST", f"/traces/{second}/corrections", {"verdict": "wrong", "position": 1})
    query = f"gold={first['trace']}&pred={second}"
    same = client.call("GET", f"/compare?{query}")
    assert same["score"]["soft"]["f1"] == 100
    assert [(one["gold"], one["pred"], one["right"]) for one in same["matches"]] == [(n, n, True) for n in range(6)]
    corrected = client.call("GET", f"/compare?{query}&corrected=true")
    assert corrected["score"]["soft"]["f1"] < 100
    assert len(corrected["matches"]) == 5
    other = client.tracked("Open the window. Air the room.")["trace"]
    assert "different steps" in client.call("GET", f"/compare?gold={other}&pred={second}", status=422)["error"]


def test_a_question_and_a_plan(client: Client) -> None:
    trace = client.tracked(TEXT)["trace"]
    answer = client.call("POST", f"/traces/{trace}/ask", {"question": "Is the soup hot?"}, status=200)
    assert [one["step"] for one in answer["likelihoods"]] == [0, 1, 2, 3, 4]
    assert answer["likelihoods"][-1]["rating"] > answer["likelihoods"][0]["rating"]
    found = client.call("POST", f"/traces/{trace}/plan", {"goal": "leeks soft"}, status=200)
    assert (found["status"], found["steps"]) == ("solved", [1, 2])


@pytest.mark.parametrize(
    ("name", "content", "documents", "traces"),
    [
        ("tea.html", PAGE.encode(), 1, 0),
        ("tea.txt", "﻿Boil water. Add tea.".encode("utf-16"), 1, 0),
        ("soup.jsonl", jsonl.dumps(SOUP) + b"\n", 1, 1),
        ("../../etc/soup.csv", b"id,step,text,entity,attribute,before,after\ns,1,Boil it.,it,heat,cold,hot\n", 1, 1),
        ("steps.json", b'[{"id": "a", "goal": "Tea", "steps": ["Boil water."]}]', 1, 0),
    ],
)
def test_files_of_every_kind_are_read(client: Client, name: str, content: bytes, documents: int, traces: int) -> None:
    found = client.call("POST", "/documents/upload", params={"name": name}, content=content)
    assert (len(found["documents"]), len(found["traces"])) == (documents, traces)
    assert found["documents"][0]["name"] == Path(name).name
    assert "/tmp" not in json.dumps(client.call("GET", f"/documents/{found['documents'][0]['id']}"))


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02\xff", b'{"a": ', b"[" * 100_000, b'{"id":1}'])
def test_files_that_cannot_be_read_are_refused_without_a_word_of_the_servers_folders(
    client: Client, content: bytes
) -> None:
    found = client.call("POST", "/documents/upload", params={"name": "x.json"}, content=content, status=422)
    assert "/tmp" not in json.dumps(found)


def test_the_archive_is_searched_and_comes_in_pages(client: Client) -> None:
    for number in range(3):
        client.document(f"# Mend a zither {number}\n\nTake the zither. Mend it.")
    first = client.call("GET", "/documents?q=zithers&limit=2")
    assert (len(first["items"]), first["total"], first["next"]) == (2, 3, 2)
    assert len(client.call("GET", "/documents?q=zither&limit=2&offset=2")["items"]) == 1


def test_a_backup_is_restored_on_another_server(client: Client, tmp_path: Path) -> None:
    job = client.tracked(TEXT)
    saved = client.get("/api/v1/backup").content
    with served(tmp_path / "other.sqlite", replaying(tmp_path)) as other:
        restored = other.call("POST", "/restore", content=saved, status=200)
        assert restored["documents"] == client.call("GET", "/documents")["total"]
        ours, theirs = (one.call("GET", f"/traces/{job['trace']}") for one in (client, other))
        assert ours == theirs
        assert other.call("POST", "/restore", content=saved[:-30], status=422)["error"]


def test_corrections_are_exported_as_traces(client: Client, tmp_path: Path) -> None:
    trace = client.tracked(TEXT)["trace"]
    client.call("POST", f"/traces/{trace}/corrections", {"verdict": "right", "position": 0})
    (tmp_path / "mine.jsonl").write_bytes(client.get("/api/v1/corrections/export").content)
    assert f"leek-soup-{trace}" in [one.id for one in load(tmp_path / "mine.jsonl")]


def test_a_trace_is_deleted_and_its_document_stays(client: Client) -> None:
    job = client.tracked(TEXT)
    client.call("DELETE", f"/traces/{job['trace']}", status=204)
    client.call("GET", f"/traces/{job['trace']}", status=404)
    assert client.call("GET", f"/documents/{job['document']}")["traces"] == []


def test_a_cancelled_job_keeps_its_steps_and_goes_on_when_it_is_resumed(tmp_path: Path) -> None:
    with served(tmp_path / "web.sqlite", replaying(tmp_path, pause=0.3)) as client:
        job = client.job(client.document(TEXT))
        seen = []
        for event in client.events(job):
            seen.append(event)
            if event.kind == "step" and event.data["step"] == 1:
                cancelled = client.call("POST", f"/jobs/{job['id']}/cancel", status=200)
        assert cancelled["state"] == "cancelled"
        assert seen[-1].data["state"] == "cancelled"
        assert [event.data["step"] for event in seen if event.kind == "step"][:1] == [1]
        partial = client.call("GET", f"/jobs/{job['id']}/trace")
        assert partial["covered"][0] == 1
        client.call("POST", f"/jobs/{job['id']}/resume", status=202)
        steps = [event.data["step"] for event in client.events(job) if event.kind == "step"]
        assert steps == [1, 2, 3, 4]  # each once
        assert client.call("GET", f"/jobs/{job['id']}")["state"] == "done"
        assert (
            client.call("POST", f"/jobs/{job['id']}/resume", status=409)["error"]
            == "cannot resume this job, because it is done"
        )


def test_clients_have_a_limited_place_in_the_queue(tmp_path: Path) -> None:
    with served(tmp_path / "web.sqlite", replaying(tmp_path, pause=3600), queued_jobs=2) as client:
        document = client.document(TEXT)
        running = client.job(document)
        next(event for event in client.events(running) if event.data.get("state") == "running")
        queued = [client.job(document) for _ in range(2)]
        assert [one["ahead"] for one in queued] == [1, 2]
        client.call("POST", f"/documents/{document['id']}/jobs", {}, status=429)
        client.cookies.clear()
        assert client.job(document)["ahead"] == 1  # somebody else, who waits for one turn only
        client.call("DELETE", f"/documents/{document['id']}", status=204)
        assert client.call("GET", "/jobs") == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tracker": "gpt-9"}, "no tracker"),
        ({"samples": 3}, "no effect"),
        ({"samples": 0}, "`samples` is too small"),
        ({"x": 1}, "unknown field: `x`"),
    ],
)
def test_a_job_that_cannot_be_is_refused_at_once(client: Client, given: dict[str, object], said: str) -> None:
    document = client.document(TEXT)
    assert said in client.call("POST", f"/documents/{document['id']}/jobs", given, status=422)["error"]


@pytest.mark.parametrize(
    "path", [f"/documents/{NOWHERE}", f"/jobs/{NOWHERE}", f"/jobs/{NOWHERE}/events", f"/traces/{NOWHERE}"]
)
def test_what_is_not_there_is_not_found(client: Client, path: str) -> None:
    assert client.call("GET", path, status=404)["error"].startswith("there is no ")


def test_the_reference_of_the_api_has_all_of_it_and_asks_no_third_party(client: Client) -> None:
    page = client.get("/api").text
    for path in client.call("GET", "/openapi.json")["paths"]:
        assert path in page
    assert "http" not in page.replace("HTTPValidationError", "")


@pytest.mark.parametrize("path", ["/", "/api", "/static/app.js"])
def test_head_is_answered_as_get_is(client: Client, path: str) -> None:
    """As `curl -I` asks."""
    head, get = client.head(path), client.get(path)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-type", "content-length", "content-security-policy"):
        assert head.headers[name] == get.headers[name]
    assert client.post(path).json()["error"] == "Method Not Allowed"
