"""Values of a store over HTTP."""

from __future__ import annotations

import http.client

from horovod.runner._gone import gone_function

_SECONDS = 60.0


def _request(method: str, address: str, port: int, path: str, body: bytes | None = None) -> bytes:
    connection = http.client.HTTPConnection(address, int(port), timeout=_SECONDS)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        content = answer.read()
    except OSError as error:
        message = f"{method} http://{address}:{port}{path}: {error}"
        raise RuntimeError(message) from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        message = f"{method} http://{address}:{port}{path}: status {answer.status} {answer.reason}"
        raise RuntimeError(message)
    return content


def get_value(address: str, port: int, scope: str, key: str) -> bytes:
    """Return a value; RuntimeError if there is none."""
    return _request("GET", address, port, f"/{scope}/{key}")


def put_value(address: str, port: int, scope: str, key: str, value: bytes) -> None:
    """Store a value."""
    _request("PUT", address, port, f"/{scope}/{key}", value)


# They unpickled what anybody had put there.
read_data_from_kvstore = gone_function("horovod.runner.http.http_client.read_data_from_kvstore")
put_data_into_kvstore = gone_function("horovod.runner.http.http_client.put_data_into_kvstore")
