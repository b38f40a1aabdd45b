"""foretell serve: what is on this machine, in a browser."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from types import FrameType

    from fastapi import FastAPI


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at; others need the token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8400, show_default=True, help="0 takes a free one.")
@click.option(
    "--token",
    envvar="FORETELL_TOKEN",
    show_envvar=True,
    help="What spending and writing need (default: a new one, printed).",
)
@click.option("--open", "opened", is_flag=True, help="Open a browser.")
def serve(host: str, port: int, token: str | None, opened: bool) -> None:
    """Show runs, questions and arenas in a browser, and ask there.

    Only this machine can reach it unless --host says otherwise. Looking is free; whatever spends money or writes needs
    the token, which the printed link carries. Everything shown is also JSON: see /openapi.json.
    """
    import secrets

    from foretell.app.settings import load_settings
    from foretell.questions.problems import InputError, MissingExtra

    try:
        from foretell.app.web.server import create_app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("fastapi", "jinja2", "markupsafe", "starlette"):
            raise
        raise MissingExtra("foretell serve", "web") from None
    if token is not None and len(token) < 16:
        raise InputError("the token is short enough to be guessed", column="--token", hint="16 characters or more")
    token = token or secrets.token_urlsafe(24)
    _run(create_app(load_settings(), token=token, host=host), host, port, token, opened=opened)


def _run(app: "FastAPI", host: str, port: int, token: str, *, opened: bool) -> None:
    import socket

    from foretell.questions.problems import InputError, MissingExtra

    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("foretell serve", "web") from None
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise InputError(
            f"cannot listen at {host}, port {port}: {error.strerror}", hint="name another --port"
        ) from None
    name = f"[{host}]" if ":" in host else host
    link = f"http://{name}:{listening.getsockname()[1]}/login?token={token}"
    click.echo(f"foretell serves at {link}\nCtrl-C ends it. Whoever has this link can spend what your keys allow.")
    if opened:
        import webbrowser

        webbrowser.open(link)
    # No access log: the login link carries the token.
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
    leaving = app.state.serving.leaving

    class Leaving(uvicorn.Server):
        """Tells open streams to let go when it is told to end, so that nobody waits for them."""

        def handle_exit(self, sig: int, frame: "FrameType | None") -> None:
            leaving.set()
            super().handle_exit(sig, frame)

    with listening:
        Leaving(config).run(sockets=[listening])
