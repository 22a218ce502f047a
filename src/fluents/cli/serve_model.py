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
            help="Model to serve: tiny, small, base or a GGUF file. Default: the model of --adapter if given, "
            "otherwise $FLUENTS_MODEL if set, otherwise base.",
            metavar="NAME",
        ),
    ] = None,
    adapter: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="LoRA adapter for the model: a name from `fluents weights list`, or a GGUF file. Default: none.",
        ),
    ] = None,
    slots: Annotated[
        int,
        typer.Option(
            min=1,
            max=64,
            help="Number of requests to answer at the same time. If N is more than 1, the same request can get "
            "different answers.",
        ),
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the address of the server as JSON.")] = False,
) -> None:
    """Serve an embedded model on this machine, as an OpenAI-compatible endpoint. Press Ctrl-C to stop it.

    Without --adapter, the model answers chat requests (/v1/chat/completions). Its answers are poor, but good enough to
    try `fluents track-llm`. With --adapter, the model expects prompts in the format of `fluents track`, at
    /v1/completions. To track texts with an adapter, use `fluents track --adapter`, which needs no server.

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
