"""A store over HTTP: `PUT`, `GET` and `DELETE` of /scope/key, bytes in memory.

For drivers in Python whose workers come over a network that is trusted; jobs of `horovodrun` use none of it.
"""

from __future__ import annotations

import collections
import http.client
import select
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from horovod.runner.common.util.hosts import SlotInfo
from horovod.runner.util.network import find_port, get_local_host_addresses, resolve_host_address

_READ_SECONDS = 3.0
_MOST_BYTES = 1 << 30


class KVStoreHandler(BaseHTTPRequestHandler):
    """Answers the requests to a KVStoreServer."""

    timeout = _READ_SECONDS
    server: KVStoreHTTPServer

    def do_GET(self) -> None:
        """Send the value, or 404."""
        place = self._place()
        if place is None:
            return
        value = self._get_value(*place)
        if value is None:
            self._send(http.client.NOT_FOUND)
        else:
            self._send(http.client.OK, value)

    def do_PUT(self) -> None:
        """Keep the body as the value."""
        place = self._place()
        if place is None:
            return
        try:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 <= length <= _MOST_BYTES:
                self._send(http.client.REQUEST_ENTITY_TOO_LARGE)
                return
            value = self.rfile.read(length)
        except TimeoutError:
            self._send(http.client.REQUEST_TIMEOUT)
            return
        except ValueError:
            self._send(http.client.BAD_REQUEST)
            return
        try:
            self._put_value(*place, value)
        except ValueError:
            self._send(http.client.BAD_REQUEST)
            return
        self._send(http.client.OK)

    def do_DELETE(self) -> None:
        """Drop the value."""
        place = self._place()
        if place is not None:
            self._delete_value(*place)
            self._send(http.client.OK)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _place(self) -> tuple[str, str] | None:
        parts = self.path.split("/")
        if len(parts) != 3 or parts[0]:  # noqa: PLR2004 - nothing, scope, key
            self._send(http.client.BAD_REQUEST)
            return None
        return parts[1], parts[2]

    def _send(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _get_value(self, scope: str, key: str) -> bytes | None:
        with self.server.cache_lock:
            return self.server.cache.get(scope, {}).get(key)

    def _put_value(self, scope: str, key: str, value: bytes) -> None:
        with self.server.cache_lock:
            self.server.cache.setdefault(scope, {})[key] = value

    def _delete_value(self, scope: str, key: str) -> None:
        with self.server.cache_lock:
            self.server.cache.get(scope, {}).pop(key, None)


def _own_addresses() -> list[str]:
    """Those of the loopback interface first: the first is looked up by name."""
    addresses = get_local_host_addresses()
    named = resolve_host_address(socket.gethostname())
    if named is not None and named.startswith("127."):
        addresses.add(named)  # 127.0.1.1 on Debian; no interface has it
    return sorted(addresses, key=lambda address: (not address.startswith("127."), address))


class _LocalHTTPServer(ThreadingHTTPServer):
    """Without a host in its address it listens on those that this host has now, and on no wildcard."""

    def __init__(self, address: tuple[str, int], handler: type[KVStoreHandler]) -> None:
        """Listen at the address; 0.0.0.0 is taken at its word."""
        self._listeners: dict[int, socket.socket] = {}
        self._ready = select.epoll()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Take the port at all addresses, or at none."""
        host, port = self.server_address[:2]
        first, *others = [str(host)] if host else _own_addresses()
        self.server_address = (first, port)
        super().server_bind()
        self._watch(self.socket)
        for other in others:
            self._watch(socket.create_server((other, self.server_port), backlog=self.request_queue_size))

    def _watch(self, listener: socket.socket) -> None:
        listener.setblocking(False)  # whoever connected may be gone before it is taken
        self._listeners[listener.fileno()] = listener
        self._ready.register(listener, select.EPOLLIN)

    def fileno(self) -> int:
        """Readable when somebody calls at any of the addresses."""
        return self._ready.fileno()

    def get_request(self) -> tuple[socket.socket, Any]:
        """The next call; OSError if there is none any more."""
        for descriptor, _ in self._ready.poll(0, 1):
            return self._listeners[descriptor].accept()
        raise BlockingIOError

    def server_close(self) -> None:
        """Listen no more."""
        super().server_close()
        for listener in self._listeners.values():
            listener.close()
        self._ready.close()


class KVStoreHTTPServer(_LocalHTTPServer):
    """The values, and who asks for them."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[KVStoreHandler], verbose: int = 0) -> None:
        """Listen at the address; without a host in it, at all that this host has now."""
        super().__init__(address, handler)
        self.verbose = verbose
        self.cache_lock = threading.Lock()
        self.cache: dict[str, dict[str, bytes]] = {}


class RendezvousHandler(KVStoreHandler):
    """Clears a scope when all of its ranks have said that they are done with it."""

    server: RendezvousHTTPServer

    def _delete_value(self, scope: str, key: str) -> None:
        with self.server.cache_lock:
            size = self.server.scope_size.get(scope)
            if size is None:
                self.server.cache.get(scope, {}).pop(key, None)
                return
            finished = self.server.finished_list[scope]
            finished.append(key)
            if len(finished) == size:
                self.server.cache.get(scope, {}).clear()
                finished.clear()


class RendezvousHTTPServer(KVStoreHTTPServer):
    """Knows how many ranks each scope has."""

    def __init__(self, address: tuple[str, int], handler: type[KVStoreHandler], verbose: int = 0) -> None:
        """Listen at the address."""
        super().__init__(address, handler, verbose)
        self.scope_size: dict[str, int] = {}
        self.finished_list: collections.defaultdict[str, list[str]] = collections.defaultdict(list)

    def init(self, host_alloc_plan: list[SlotInfo]) -> None:
        """Take the places of a world; what was kept for the one before is dropped."""
        scopes: collections.Counter[str] = collections.Counter()
        for slot in host_alloc_plan:
            scopes.update(["global", f"local_{slot.hostname}", f"cross_{slot.local_rank}"])
        with self.cache_lock:
            self.scope_size = dict(scopes)
            self.finished_list.clear()
            for scope in scopes:
                self.cache.pop(scope, None)


class _ServerThread:
    """Runs a server until it is stopped."""

    def __init__(self, verbose: int = 0) -> None:
        """Start nothing yet."""
        self._verbose = verbose
        self._server: Any = None
        self._thread: threading.Thread | None = None

    def _start(self, server_class: type[KVStoreHTTPServer], handler: type[KVStoreHandler]) -> int:
        self._server, port = find_port(lambda address: server_class(address, handler, self._verbose))
        self._thread = threading.Thread(target=self._server.serve_forever, name="hvd-http", daemon=True)
        self._thread.start()
        return port

    def stop(self) -> None:
        """Answer no more; a second call does nothing."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class RendezvousServer(_ServerThread):
    """The store that an ElasticDriver is given."""

    def start(self, handler_cls: type[RendezvousHandler] = RendezvousHandler) -> int:
        """Listen at a free port, and return it."""
        return self._start(RendezvousHTTPServer, handler_cls)

    def init(self, host_alloc_plan: list[SlotInfo]) -> None:
        """Take the places of a world."""
        if self._server is not None:
            self._server.init(host_alloc_plan)

    @property
    def httpd(self) -> Any:
        """The server itself, while it runs."""
        return self._server


class KVStoreServer(_ServerThread):
    """A plain store."""

    def start_server(self) -> int:
        """Listen at a free port, and return it."""
        return self._start(KVStoreHTTPServer, KVStoreHandler)

    def shutdown_server(self) -> None:
        """Answer no more."""
        self.stop()
