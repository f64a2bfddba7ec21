"""A hub of models on a local port: what huggingface_hub asks a real one, and the ways in which one can misbehave."""

import dataclasses
import hashlib
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import constants

_INFO = re.compile(r"/api/models/([^/]+/[^/]+)/revision/(.+)")
_FILE = re.compile(r"/(?:datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


@dataclasses.dataclass
class Hub:
    """What the server holds and how it behaves.

    Attributes:
        commits: files by (ORG/NAME, commit).
        names: commit by (ORG/NAME, tag or branch).
        asked: (method, path, headers with lower-case names) of every request.
        fail: status and X-Error-Code of answers to paths that match the pattern, checked first.
        cut: how many times more the body of a file is cut in the middle.
        short: files that never arrive whole, whatever is asked.
        altered: files of which a bit is flipped.
        ignore_range: whether a Range is answered with the whole file.
        elsewhere: where weights are redirected to.
        pause: seconds between eighths of a body.
    """

    commits: dict[tuple[str, str], dict[str, bytes]] = dataclasses.field(default_factory=dict)
    names: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str]]] = dataclasses.field(default_factory=list)
    fail: list[tuple[str, int, str]] = dataclasses.field(default_factory=list)
    cut: dict[str, int] = dataclasses.field(default_factory=dict)
    short: set[str] = dataclasses.field(default_factory=set)
    altered: set[str] = dataclasses.field(default_factory=set)
    ignore_range: bool = False
    elsewhere: str = ""
    pause: float = 0.0
    url: str = ""

    def add(self, repository: str, files: dict[str, bytes] | Path, *names: str) -> str:
        """Publish a commit, reachable by ``names`` too; return its 40 digits."""
        if isinstance(files, Path):
            files = {file.name: file.read_bytes() for file in files.iterdir()}
        listing = json.dumps({name: hashlib.sha1(content).hexdigest() for name, content in files.items()}, sort_keys=True)
        commit = hashlib.sha1((repository + listing).encode()).hexdigest()
        self.commits[repository, commit] = files
        self.names |= {(repository, name): commit for name in names}
        return commit

    def paths(self, method: str) -> list[str]:
        """The paths that were asked for with ``method``, in order."""
        return [path for how, path, _ in self.asked if how == method]

    def downloaded(self) -> set[str]:
        """Names of the files whose bodies were sent."""
        return {path.rsplit("/", 1)[1] for path in self.paths("GET") if _FILE.match(path)}


def is_large(name: str) -> bool:
    """Whether the hub keeps a file in LFS, known by its sha256."""
    return name.endswith((".safetensors", ".bin"))


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def hash_of(name: str, content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() if is_large(name) else git_sha1(content)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: Any) -> None:
        pass

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that gave up
            super().handle()

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((self.command, path, {key.lower(): value for key, value in self.headers.items()}))
        failure = next((f for f in self.hub.fail if re.search(f[0], path)), None)
        info, file = _INFO.fullmatch(path), _FILE.fullmatch(path)
        if failure:
            self._send(failure[1], b"", {"X-Error-Code": failure[2]} if failure[2] else {})
        elif info:
            self._info(*info.groups())
        elif file:
            self._file(*file.groups())
        else:
            self._send(404, b"", {})

    def _commit(self, repository: str, revision: str) -> str | None:
        commit = self.hub.names.get((repository, revision), revision)
        if (repository, commit) in self.hub.commits:
            return commit
        known = any(repository == name for name, _ in self.hub.commits)
        self._send(404, b"", {"X-Error-Code": "RevisionNotFound" if known else "RepoNotFound"})
        return None

    def _info(self, repository: str, revision: str) -> None:
        commit = self._commit(repository, revision)
        if commit is None:
            return
        siblings = []
        for name, content in self.hub.commits[repository, commit].items():
            facts: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": git_sha1(content)}
            if is_large(name):
                facts["lfs"] = {"sha256": hash_of(name, content), "size": len(content), "pointerSize": 130}
            siblings.append(facts)
        body = {"id": repository, "sha": commit, "siblings": siblings}
        self._send(200, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _file(self, repository: str, revision: str, name: str) -> None:
        commit = self._commit(repository, revision)
        if commit is None:
            return
        content = self.hub.commits[repository, commit].get(name)
        if content is None:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
            return
        headers = {"X-Repo-Commit": commit, "ETag": f'"{hash_of(name, content)}"', "Accept-Ranges": "bytes"}
        if is_large(name):
            headers |= {"X-Linked-Size": str(len(content)), "X-Linked-Etag": headers["ETag"]}
            if self.hub.elsewhere:
                self._send(302, b"", headers | {"Location": f"{self.hub.elsewhere}{self.path}"})
                return
        if name in self.hub.altered:
            content = content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]
        self._body(name, content, headers)

    def _body(self, name: str, content: bytes, headers: dict[str, str]) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked.group(1)) if asked and not self.hub.ignore_range else 0
        status = 206 if start else 200
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        stop = len(content)
        if self.command == "GET" and (name in self.hub.short or self.hub.cut.get(name, 0) > 0):
            self.hub.cut[name] = self.hub.cut.get(name, 0) - 1
            stop = max(start, len(content) // 2)
        self._send(status, content[start:], headers, stop - start)

    def _send(self, status: int, body: bytes, headers: dict[str, str], stop: int | None = None) -> None:
        """Answer; where ``stop`` is less than the body, promise all of it and close after so many bytes."""
        self.send_response(status)
        for key, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        sent = body if stop is None else body[:stop]
        step = max(1, len(sent) // 8) if self.hub.pause else max(1, len(sent))
        for start in range(0, len(sent), step):
            time.sleep(self.hub.pause)
            self.wfile.write(sent[start : start + step])
            self.wfile.flush()
        if len(sent) < len(body):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_WR)


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    """Run ``hub`` on a free port of this machine."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def closed_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def point_at(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Make huggingface_hub, which reads its settings when it is imported, ask ``url``."""
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
