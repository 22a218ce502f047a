"""fluents web"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from fluents.cli.command import show_json, tell, with_options
from fluents.cli.model_options import BASE_URL_HELP
from fluents.errors import needs_extra


@dataclass(frozen=True)
class WebTrackerOptions:
    """What jobs are tracked with. Each field is an option and a parameter of `tracker_menu`."""

    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Model to use: an embedded model (tiny, small, base or a GGUF file), or the name of a language "
            "model at --base-url. On the page, you can choose another model for each text. Default: the model of "
            "--adapter if given, otherwise $FLUENTS_MODEL if set, otherwise base.",
        ),
    ] = None
    adapter: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="LoRA adapter for the embedded model: a name from `fluents weights list`, or a GGUF file. "
            "Default: the adapter made for --model.",
        ),
    ] = None
    base_url: Annotated[str | None, typer.Option(metavar="URL", help=BASE_URL_HELP)] = None
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read the API key of the endpoint from FILE.")
    ] = None
    key_variable: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Read the API key of the endpoint from the environment variable NAME. Default: OPENAI_API_KEY, if the "
            "URL of the endpoint begins with https.",
        ),
    ] = None
    replay: Annotated[Path | None, typer.Option(hidden=True, help="Repeat the traces in FILE instead.")] = None
    pause: Annotated[float, typer.Option(hidden=True, min=0, help="Seconds that `--replay` takes per step.")] = 0.0


@with_options
def web(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8765,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen on. If other machines can reach this address, --token-file is required.",
        ),
    ] = "127.0.0.1",
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where texts and results are stored: an SQLite file, or a database such as "
            "postgresql://user@host/database. Default: $FLUENTS_STORE if set, otherwise web.sqlite in your "
            "data folder (on Linux, ~/.local/share/fluents).",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Accept only requests with one of the access tokens in FILE (one token per line)."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also accept requests that were sent to the host NAME, such as fluents.example.org. Needed behind "
            "a proxy. Repeat for several names.",
        ),
    ] = None,
    open_page: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Open the page in the browser, or do not. Default: open it if you run the command in a terminal.",
        ),
    ] = None,
    time_limit: Annotated[float, typer.Option(min=1, help="Time limit for tracking a text, in seconds.")] = 3600.0,
    memory_limit: Annotated[
        int, typer.Option(min=0, help="Memory limit of the process that runs the model, in MiB; 0 means no limit.")
    ] = 8192,
    as_json: Annotated[bool, typer.Option("--json", help="Print the address of the server as JSON.")] = False,
    *,
    trackers: WebTrackerOptions,
) -> None:
    """Start the web application, to track texts in the browser. Press Ctrl-C to stop it.

    Needs the extra `fluents[web]`.

    In the browser, paste a text or drop a file, and watch its changes appear. You can correct, compare and download the
    changes. The server stores texts and results in a database. If you stop the server while it tracks a text,
    tracking continues when you start the server again.

    Example: `fluents web`

    Example: `fluents web --model NAME --base-url http://127.0.0.1:8080/v1 --store postgresql://me@db/fluents`
    """
    with needs_extra("web"):
        from fluents.web.application import WebSettings
        from fluents.web.guard import GuardRules, read_tokens
        from fluents.web.runner import WorkerLimits
        from fluents.web.server import WebServer, check_host, listening_socket
        from fluents.web.store import Store, default_url
        from fluents.web.tracker_choices import tracker_menu

    tokens = frozenset[str]() if token_file is None else read_tokens(token_file)
    check_host(host, tokens)
    names = frozenset(name.lower() for name in (host, *(allow_host or ())))
    settings = WebSettings(
        menu=tracker_menu(**asdict(trackers)),
        rules=GuardRules(hosts=names, any_address=bool(tokens), tokens=tokens),
        limits=WorkerLimits(seconds=time_limit, memory=memory_limit),
    )
    with listening_socket(host, port) as listening, Store(store or default_url()) as opened:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/"

        def announce() -> None:
            if as_json:
                show_json({"address": address, "store": opened.name})
            else:
                print(f"fluents is at {address}\nwhat you track is kept in {opened.name}\npress Ctrl-C to stop")
            sys.stdout.flush()
            if open_page or (open_page is None and sys.stdout.isatty()):
                import webbrowser

                webbrowser.open(address)

        try:
            WebServer(opened, settings, announce).run(sockets=[listening])
        except KeyboardInterrupt:
            tell("stopped")
