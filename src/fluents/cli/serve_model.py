"""fluents serve-model"""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from fluents.cli.command import messages, show_json


def serve_model(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8080,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model to serve: tiny, small, base or a GGUF file. Default: $FLUENTS_MODEL, or else base.",
            metavar="NAME",
        ),
    ] = None,
    adapter: Annotated[
        str | None, typer.Option(help="LoRA adapter to apply: a name from `fluents weights list`, or a GGUF file.")
    ] = None,
    slots: Annotated[
        int, typer.Option(min=1, max=64, help="Number of concurrent requests; with more than 1, answers may vary.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the address as JSON.")] = False,
) -> None:
    """Serve the embedded model to OpenAI-compatible clients on this machine, offline, until Ctrl-C.

    Without --adapter, the server answers chat requests (/v1/chat/completions): not well, but well enough to try
    `fluents track-llm`. With --adapter, send the prompts of the embedded tracker to /v1/completions.

    Example: `fluents serve-model --port 8080`
    """
    from fluents.trackers.model_server import Server, check_free, serve
    from fluents.weights.adapters import base_file, open_embedded

    check_free(port)
    if adapter is None:
        base_file(model, messages)
    else:
        open_embedded(model, adapter).base_path(messages)

    def announce(server: Server) -> None:
        if as_json:
            show_json({"base_url": server.base_url, "model": server.model})
        else:
            print(f"serving {server.model} at {server.base_url}")
            if adapter is None:
                options = f"--base-url {server.base_url} --model {server.model}"
                print(f"try: fluents track recipe.txt {options}")
            print("press Ctrl-C to stop", flush=True)

    try:
        with serve(port, adapter, slots, model) as server:
            announce(server)
            forever = threading.Event()
            while not forever.wait(1):  # in short waits: on some systems a signal does not end a long one
                pass
    except KeyboardInterrupt:
        messages.print("stopped")
