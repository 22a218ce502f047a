"""The web application as a visitor meets it: a real server, a real browser, a replayed model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from served_web import STEPS, TEXT, TRACE, change, give, item, served, tracked
from visit import HOSTILE, look_at, serious_faults, to, visiting

from fluents import jsonl

pytest.importorskip("fastapi", reason="needs the extra web")
pytest_plugins = ["chromium"]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose model takes no time."""
    with served(tmp_path_factory.mktemp("web")) as (_, address):
        yield address


def test_from_a_pasted_text_to_a_corrected_downloaded_table(browser: Browser, tmp_path: Path) -> None:
    """The way of a first visitor; the model takes its time, so that steps can be seen to appear one after the other."""
    with served(tmp_path, pause=2) as (_, address), visiting(browser, address) as tab:
        expect(tab.get_by_role("list", name="How it works")).to_be_visible()
        assert serious_faults(tab) == {}
        give(tab)
        expect(tab.locator(".editor textarea")).to_have_count(4)
        tab.get_by_role("button", name="Track the changes").click()
        tab.wait_for_url("**/?job=*")
        seen = []
        for _ in range(400):
            seen.append(tab.locator(".step:has(li.change)").count())
            if "trace=" in tab.url:
                break
            tab.wait_for_timeout(50)
        assert {1, 2, 3} <= set(seen)
        assert seen == sorted(seen)
        expect(tab.locator(".coach")).to_be_visible()

        tab.get_by_label("Confidence from").fill("0.5")
        expect(tab.locator("li.change:visible")).to_have_count(4)
        tab.get_by_label("Confidence from").fill("0")

        item(tab, "cold → hot").get_by_role("button", name="Right").click()
        item(tab, "whole → cracked").get_by_role("button", name="Wrong").click()
        fried = item(tab, "raw → fried")
        fried.get_by_role("button", name="Edit").click()
        fried.get_by_label("after").fill("crisp")
        fried.get_by_role("button", name="Save").click()
        tab.get_by_role("button", name="Add a change to step 4").click()
        form = tab.locator(".words-form")
        for field, words in {"entity": "plate", "attribute": "content", "before": "empty", "after": HOSTILE}.items():
            form.get_by_label(field).fill(words)
        form.get_by_role("button", name="Add").click()
        expect(tab.get_by_text("4 of 6 changes judged")).to_be_visible()

        tab.reload()
        expect(tab.get_by_text("4 of 6 changes judged")).to_be_visible()
        fried = item(tab, "raw → fried")  # the model's words stay
        expect(fried.locator(".yours")).to_contain_text("raw → crisp")
        expect(item(tab, "whole → cracked").get_by_role("button", name="Wrong")).to_have_attribute(
            "aria-pressed", "true"
        )
        expect(tab.locator(".added .after")).to_have_text(HOSTILE)
        assert tab.evaluate("window.hacked") is None

        tab.locator("summary", has_text="Download").click()
        with tab.expect_download() as waiting:
            tab.get_by_role("link", name="Table (CSV)").click()
        table = Path(waiting.value.path()).read_text(encoding="utf-8")
        assert "crisp" in table
        assert "fried" not in table
        assert "cracked" not in table
        for name, form_of in {
            "Web page": "<!doctype html>",
            "Trace": '{"fluents":',
            "Planning domain": "(define",
        }.items():
            with tab.expect_download() as waiting:
                tab.get_by_role("link", name=name).click()
            assert form_of in Path(waiting.value.path()).read_text(encoding="utf-8")


def test_back_and_forward_show_the_page_of_their_address(browser: Browser, quick: str) -> None:
    with visiting(browser, quick) as tab:
        tab.get_by_role("link", name="Library").click()
        library = tab.get_by_role("heading", name="Library")
        expect(library).to_be_visible()
        tab.go_back()
        expect(tab.get_by_label("Text")).to_be_visible()
        give(tab)
        tab.go_back()
        expect(tab.get_by_label("Text")).to_be_visible()
        tab.go_forward()
        expect(tab.locator(".editor textarea")).to_have_count(4)
        tracked(tab)
        tab.go_back()  # the job's page made way for the trace
        expect(tab.locator(".editor textarea")).to_have_count(4)
        tab.get_by_role("link", name="Library").click()
        tab.get_by_label("Find").fill("becomes hot")
        tab.locator(".found-changes a").first.click()
        expect(tab.locator("#p1s1")).to_be_in_viewport()
        tab.go_back()
        expect(tab.get_by_label("Find")).to_have_value("becomes hot")


def test_steps_are_corrected_by_mouse_and_kept(browser: Browser, quick: str) -> None:
    with visiting(browser, quick) as tab:
        give(tab)
        boxes = tab.locator(".editor textarea")
        tab.get_by_role("button", name="Move down: step 1").click()
        expect(boxes.first).to_have_value("Crack the egg into it.")
        tab.get_by_role("button", name="Join with the step before: step 2").click()
        expect(boxes).to_have_count(3)
        expect(boxes.first).to_have_value("Crack the egg into it. Heat the pan.")
        tab.get_by_role("button", name="Delete: step 3").click()
        expect(boxes).to_have_count(2)
        tab.get_by_role("button", name="Undo").click()
        expect(boxes).to_have_count(3)
        tab.get_by_role("button", name="Split at the cursor: step 1").click()
        expect(boxes.first).to_have_value("Crack the egg into it.")
        tab.get_by_label("Goal").fill("Fry one egg")
        expect(tab.locator(".saved")).to_have_text("Saved")
        tab.reload()
        expect(boxes).to_have_count(4)
        expect(boxes.nth(1)).to_have_value("Heat the pan.")
        expect(tab.get_by_label("Goal")).to_have_value("Fry one egg")
        tab.get_by_role("button", name="Restore the original steps").click()
        expect(boxes.first).to_have_value("Heat the pan.")


def test_two_traces_are_compared_and_gold_comes_from_a_file(browser: Browser, quick: str, tmp_path: Path) -> None:
    gold = TRACE.replace(changes=(*TRACE.changes[:3], change(3, "stove", "power", "on", "off", 1)))
    jsonl.write([gold], tmp_path / "gold.jsonl")
    with visiting(browser, quick) as tab:
        give(tab)
        tracked(tab)
        tab.locator("summary", has_text="Compare").click()
        tab.locator("#gold-file").set_input_files(tmp_path / "gold.jsonl")
        tab.wait_for_url("**/?compare=*")
        expect(tab.locator(".pair.matched")).to_have_count(3)
        expect(tab.locator(".pair.alone")).to_have_count(3)
        expect(tab.locator(".score tbody tr").first).to_contain_text(re.compile(r"\d+\.\d"))
        tab.get_by_role("link", name="Swap the sides").click()
        expect(tab.locator(".pair.matched")).to_have_count(3)


def test_the_library_finds_what_becomes_hot_and_deletes_only_when_told_twice(browser: Browser, quick: str) -> None:
    with visiting(browser, quick) as tab:
        give(tab, TEXT.replace("Fry an egg", "Fry a third egg"))
        tracked(tab)
        tab.get_by_role("link", name="Library").click()
        expect(tab.get_by_role("heading", name="Library")).to_be_visible()  # a trace has a box to find things, too
        tab.get_by_label("Find").fill("everything that becomes hot")
        found = tab.locator(".found-changes li").first
        expect(found).to_contain_text("cold → hot")
        found.get_by_role("link").click()
        expect(tab.locator("#p1s1")).to_be_in_viewport()
        tab.get_by_role("link", name="Library").click()
        tab.get_by_role("button", name="Delete Fry a third egg").click()
        tab.get_by_role("button", name="Keep it").click()
        expect(tab.get_by_role("link", name="Fry a third egg")).to_be_visible()
        tab.get_by_role("button", name="Delete Fry a third egg").click()
        tab.get_by_role("button", name="Delete it").click()
        expect(tab.get_by_role("link", name="Fry a third egg")).to_have_count(0)
        with tab.expect_download() as waiting:
            tab.get_by_role("link", name="Download a backup").click()
        tab.locator("#restore").set_input_files(waiting.value.path())
        expect(tab.get_by_text(re.compile("Restored 0 texts"))).to_be_visible()


def test_without_a_server_the_page_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as (server, address), visiting(browser, address) as tab:
        tab.get_by_label("Text").fill(TEXT)
        server.kill()
        tab.get_by_role("button", name="Read the steps").click()
        expect(tab.get_by_role("alert")).to_contain_text("The server does not answer")
        expect(tab.get_by_role("alert")).to_contain_text("fluents web")
        server.start()
        tab.get_by_role("button", name="Read the steps").click()
        expect(tab.get_by_role("heading", name="Are these the steps?")).to_be_visible()


def test_a_server_with_tokens_asks_for_one(browser: Browser, tmp_path: Path) -> None:
    token = "a-token-of-the-tests"
    (tmp_path / "tokens").write_text(token, encoding="utf-8")
    guarded = served(tmp_path, 0.0, "--token-file", str(tmp_path / "tokens"))
    with guarded as (_, address), visiting(browser, address) as tab:
        assert serious_faults(tab) == {}
        tab.get_by_label("Token").fill("not-a-token-of-the-tests")
        tab.get_by_role("button", name="Sign in").click()
        expect(tab.get_by_role("alert")).to_contain_text("nvalid access token")
        tab.get_by_label("Token").fill(token)
        tab.get_by_role("button", name="Sign in").click()
        expect(tab.get_by_label("Text")).to_be_visible()
        tab.get_by_role("button", name="Sign out").click()
        expect(tab.get_by_label("Token")).to_be_visible()
        expect(tab.get_by_role("button", name="Sign out")).to_be_hidden()


def test_a_mended_file_is_opened_again(browser: Browser, quick: str, tmp_path: Path) -> None:
    file = tmp_path / "egg.md"
    with visiting(browser, quick) as tab:
        for text in ("", TEXT):
            file.write_text(text, encoding="utf-8")
            with tab.expect_file_chooser() as waiting:
                tab.get_by_text("Open a file …").click()
            waiting.value.set_files(file)
            expect(tab.locator("[role=alert]" if not text else ".editor")).to_be_visible()
        expect(tab.locator(".editor textarea")).to_have_count(4)


def drop(tab: Page, **files: str) -> None:
    """Drop files, by name without suffix, on the box for the text."""
    dropped = tab.evaluate_handle(
        """(files) => {
          const dropped = new DataTransfer();
          for (const [name, text] of Object.entries(files)) dropped.items.add(new File([text], `${name}.md`));
          return dropped;
        }""",
        files,
    )
    for kind in ("dragenter", "dragover", "drop"):
        tab.get_by_label("Text").dispatch_event(kind, {"dataTransfer": dropped})


EMPTY_DROP = """(box) => {
  const drop = new Event("drop", { bubbles: true, cancelable: true });
  box.dispatchEvent(Object.assign(drop, { dataTransfer: { types: ["Files"], files: [] } }));
}"""


def test_files_are_dropped(browser: Browser, quick: str) -> None:
    with visiting(browser, quick) as tab:
        tab.get_by_label("Text").evaluate(EMPTY_DROP)
        expect(tab.get_by_role("alert")).to_have_count(0)
        drop(tab, egg=TEXT)
        expect(tab.locator(".editor textarea")).to_have_count(4)
        tab.get_by_role("link", name="New").click()
        drop(tab, scrambled=TEXT.replace("Fry", "Scramble"), empty="", never=TEXT)
        expect(tab.get_by_role("alert")).to_contain_text("(empty.md) ")
        expect(tab.get_by_role("alert")).to_contain_text("Already in the library: scrambled.md.")
        drop(tab, one=TEXT.replace("an egg", "one egg"), two=TEXT.replace("an egg", "two eggs"))
        expect(tab.get_by_role("heading", name="Library")).to_be_visible()
        for name in ("Fry two eggs", "Fry one egg", "Scramble an egg"):
            expect(tab.get_by_role("link", name=name).first).to_be_visible()


def test_a_dropped_text_and_an_example_leave_a_way_back(browser: Browser, quick: str) -> None:
    with visiting(browser, quick) as tab:
        box, heading = tab.get_by_label("Text"), tab.get_by_role("heading", name="What changes, step by step")
        box.fill("Boil an egg. ")
        heading.select_text()
        heading.drag_to(box, source_position={"x": 50, "y": 10}, target_position={"x": 300, "y": 100})
        expect(box).to_have_value(re.compile("^Boil an egg. *What changes, step by step"))
        box.press("Control+z")
        expect(box).to_have_value("Boil an egg. ")
        tab.get_by_role("button", name="Flat tyre").click()
        expect(box).to_have_value(re.compile("^# Mend a flat"))
        box.press("Control+z")
        expect(box).to_have_value("Boil an egg. ")


def test_a_saved_web_page_is_opened_and_gold_that_is_none_is_refused(
    browser: Browser, quick: str, tmp_path: Path
) -> None:
    (tmp_path / "egg.html").write_text(
        "<html><title>Fry an egg</title><body><h1>Fry an egg</h1><ol>"
        + "".join(f"<li>{step}</li>" for step in STEPS)
        + "</ol></body></html>",
        encoding="utf-8",
    )
    with visiting(browser, quick) as tab:
        tab.locator("#file").set_input_files(tmp_path / "egg.html")
        expect(tab.locator(".editor textarea")).to_have_count(4)
        tracked(tab)
        tab.locator("summary", has_text="Compare").click()
        (tmp_path / "notes.txt").write_text("Sing a song. Sing another.", encoding="utf-8")
        tab.locator("#gold-file").set_input_files(tmp_path / "notes.txt")
        expect(tab.get_by_role("alert")).to_contain_text("has no changes for these steps")
        tab.get_by_role("link", name="Library").click()
        expect(tab.get_by_role("link", name="Fry an egg").first).to_be_visible()
        expect(tab.get_by_role("link", name="notes.txt")).to_have_count(0)


def test_a_text_without_a_goal_goes_by_its_first_step_and_another_language_is_warned_of(
    browser: Browser, quick: str
) -> None:
    with visiting(browser, quick) as tab:
        tab.get_by_label("Text").fill("Die Zwiebeln schälen und in Butter anschwitzen.")
        tab.get_by_role("button", name="Read the steps").click()
        expect(tab.get_by_text("fluents found 1 step.")).to_be_visible()
        expect(tab.get_by_text("seems to be in German")).to_be_visible()
        tab.get_by_role("link", name="Library").click()
        expect(tab.get_by_role("link", name="Die Zwiebeln schälen")).to_be_visible()


def test_markup_in_goal_and_steps_is_only_ever_text(browser: Browser, quick: str) -> None:
    with visiting(browser, quick) as tab:
        give(tab)
        tab.get_by_label("Goal").fill(HOSTILE)
        tab.get_by_label("Step 1", exact=True).fill(HOSTILE)
        tab.get_by_role("button", name="Track the changes").click()
        tab.wait_for_url("**/?trace=*")
        expect(tab.locator("h1")).to_have_text(HOSTILE)
        expect(tab.locator(".what").first).to_have_text(HOSTILE)
        tab.goto(f"{quick}?library")
        expect(tab.locator(".documents .main").first).to_have_text(HOSTILE)
        assert tab.locator("main img, main script").count() == 0
        assert tab.evaluate("window.hacked") is None


def test_the_keyboard_alone_leads_from_a_text_to_a_corrected_table(browser: Browser, quick: str) -> None:
    with visiting(browser, quick) as tab:
        expect(tab.get_by_label("Text")).to_be_focused()
        tab.keyboard.insert_text(TEXT)
        tab.keyboard.press("Control+Enter")
        expect(tab.locator(".editor textarea")).to_have_count(4)
        to(tab, "Step 1")
        tab.keyboard.press("Alt+ArrowDown")
        expect(tab.locator(".editor textarea").first).to_have_value("Crack the egg into it.")
        tab.keyboard.press("Alt+ArrowUp")
        tab.keyboard.press("End")
        tab.keyboard.press("Enter")
        expect(tab.locator(".editor textarea")).to_have_count(5)
        tab.keyboard.press("Backspace")
        expect(tab.locator(".editor textarea")).to_have_count(4)
        to(tab, "Track the changes")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/?trace=*")
        expect(tab.locator("li.change")).to_have_count(5)
        to(tab, "Wrong: pan, temperature")
        tab.keyboard.press("Enter")
        expect(tab.get_by_text("1 of 5 changes judged")).to_be_visible()
        to(tab, "Edit: egg, location")
        tab.keyboard.press("Enter")
        tab.keyboard.insert_text("in the pan")
        tab.keyboard.press("Enter")
        expect(tab.locator(".yours")).to_contain_text("in the pan")
        to(tab, "Download")
        tab.keyboard.press("Enter")
        to(tab, "Table (CSV)")
        with tab.expect_download() as waiting:
            tab.keyboard.press("Enter")
        assert "in the pan" in Path(waiting.value.path()).read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280, 2560])
def test_every_view_has_no_serious_fault_and_fits_the_window(
    browser: Browser, quick: str, tmp_path: Path, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 900}
    with visiting(browser, quick, viewport=size, color_scheme=scheme, reduced_motion="reduce") as tab:

        def check(name: str) -> None:
            look_at(tab, f"{name}-{width}-{scheme}")

        expect(tab.get_by_label("Text")).to_be_visible()
        check("home")
        give(tab)
        check("steps")
        tracked(tab)
        item(tab, "cold → hot").get_by_role("button", name="Right").click()
        item(tab, "whole → cracked").get_by_role("button", name="Wrong").click()
        item(tab, "raw → fried").get_by_role("button", name="Edit").click()
        check("trace")
        for menu in ("Download", "Compare", "Ask", "Plan"):
            tab.locator("summary", has_text=menu).click()
            check(menu.lower())
            tab.keyboard.press("Escape")
        for view in ("Lifelines", "Matrix"):
            tab.get_by_role("radio", name=view).check()
            check(view.lower())
        jsonl.write([TRACE.replace(changes=TRACE.changes[1:])], tmp_path / "gold.jsonl")
        tab.locator("summary", has_text="Compare").click()
        tab.locator("#gold-file").set_input_files(tmp_path / "gold.jsonl")
        expect(tab.locator(".pair.matched").first).to_be_visible()
        check("comparison")
        tab.goto(f"{quick}?document=0123456789abcdef")
        expect(tab.get_by_role("alert")).to_be_visible()
        check("gone")
        tab.goto(f"{quick}?library")
        expect(tab.locator(".documents li").first).to_be_visible()
        check("library")
        tab.get_by_role("button", name=re.compile("^Delete")).first.click()
        check("confirm")
        tab.keyboard.press("Escape")
        tab.get_by_label("Find").fill("becomes hot")
        expect(tab.locator(".found-changes li").first).to_be_visible()
        check("search")
