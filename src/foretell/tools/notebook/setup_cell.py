"""The first cell of every notebook: access to data outside. It runs in the sandbox and does not import foretell."""

import json as _json
import socket as _socket
from typing import Any as _Any

_SOCKET = "/api/data.sock"


class ApiError(Exception):
    """The data proxy did not answer a request. The message gives the reason."""


def _send(request: dict[str, _Any]) -> _Any:
    __tracebackhide__ = True
    with _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM) as connection:
        try:
            connection.connect(_SOCKET)
            connection.sendall(_json.dumps(request).encode() + b"\n")
            return _json.loads(b"".join(iter(lambda: connection.recv(1 << 16), b"")))
        except OSError as error:
            raise ApiError(f"the data proxy cannot be reached: {error}") from None
        except TypeError as error:
            raise ApiError(f"the parameters cannot be sent: {error}") from None
        except ValueError:
            raise ApiError("the data proxy hung up") from None


def _ask(request: dict[str, _Any]) -> _Any:
    __tracebackhide__ = True
    answer = _send(request)
    if "error" in answer:
        raise ApiError(answer["error"])
    return answer["result"]


def CALL_API(path: str, params: dict[str, _Any] | None = None) -> _Any:
    """Request data as it was known at the cutoff. `retrieve_api_doc()` lists what is available and how to call it."""
    __tracebackhide__ = True
    return _ask({"call": path, "params": params or {}})


def retrieve_api_doc(paths: list[str] | str | None = None) -> str:
    """Return a list of all available paths, or the documentation of some of them."""
    return _ask({"doc": [paths] if isinstance(paths, str) else paths})


def to_frame(answer: _Any) -> _Any:
    """Return the rows of a response as a pandas DataFrame; a column named date or at becomes its index."""
    import pandas

    frame = pandas.DataFrame(answer["rows"] if isinstance(answer, dict) else answer)
    for name in ("date", "at"):
        if name in frame:
            frame[name] = pandas.to_datetime(frame[name])
            frame = frame.set_index(name)
    return frame
