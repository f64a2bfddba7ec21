"""Files of one commit of a Hugging Face hub repository: only what is needed, every one of them verified."""

import contextlib
import dataclasses
import hashlib
import logging
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from huggingface_hub import HfApi, constants, hf_hub_download
from huggingface_hub.file_download import repo_folder_name

from layerwise import hub_errors
from layerwise.atomic import write_text
from layerwise.errors import ModelError
from layerwise.models.configs import refuse_code
from layerwise.models.hub_choice import describing_files, is_whole, weight_file
from layerwise.models.hub_progress import Meter
from layerwise.models.weight_files import INDEX, shards_of
from layerwise.packages import file_digest

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# Seconds between tries, beside those of the library itself.
_PAUSES = (1.0, 4.0)
_CHUNK = 1 << 20
_Answer = TypeVar("_Answer")


@dataclasses.dataclass(frozen=True)
class Listed:
    """What the hub says of a file: its bytes, and its sha256 (large files) or git's sha1 of it (small ones)."""

    size: int | None
    digest: str | None


@dataclasses.dataclass(frozen=True)
class Repository:
    """A model or adapter of the hub as the config names it.

    Attributes:
        id: ORG/NAME.
        revision: a commit, tag or branch.
        loader: the config's word, or "adapter": decides which files are needed.
        label: of the model, for what is printed.
    """

    id: str
    revision: str
    loader: str
    label: str


def fetch(repository: Repository) -> tuple[dict[str, Path], dict[str, Any]]:
    """Bring the files of a repository into the user's cache of the hub, where they are not there yet.

    A commit whose files the cache holds is taken from there without any request. A tag or branch is resolved to a commit
    once; where the hub cannot be reached, to the one that the cache knows.

    Returns:
        The path of each file, and facts for the manifest: ``revision`` (the commit), ``requested_revision``,
        ``resolved_by`` ("config", "hub" or "cache") and ``verified`` (whether every file had a hash to compare with).

    Raises:
        ModelError: one sentence on what is missing, refused, altered, not reachable, or asks to run code.
        FileError: the disk is full.
    """
    pinned = bool(_COMMIT.fullmatch(repository.revision))
    with _settings(repository.label):
        held = _held(repository, repository.revision) if pinned else None
        if held is not None:
            return held, _facts(repository, repository.revision, "config", _check_held(repository, held))
        try:
            commit, listing = _ask(repository)
        except Exception as error:
            if not hub_errors.is_unreachable(error):
                raise hub_errors.sentence(error, repository.id, repository.revision) from None
            known = None if pinned else _known_commit(repository)
            held = _held(repository, known) if known else None
            if held is None or known is None:
                raise hub_errors.sentence(error, repository.id, repository.revision) from None
            _say(repository, f"{hub_errors.host()} cannot be reached; {repository.revision!r} is {known} in the cache")
            return held, _facts(repository, known, "cache", _check_held(repository, held))
        if not pinned:
            _say(
                repository,
                f"warning: {repository.revision!r} of {repository.id} is a name that can move to other weights; it is "
                f"now {commit}, so write 'revision: {commit}' to keep them",
            )
        files, verified = _download_all(repository, commit, listing)
        if not pinned:
            _remember(repository, commit)
    return files, _facts(repository, commit, "config" if pinned else "hub", verified)


def _facts(repository: Repository, commit: str, by: str, verified: bool) -> dict[str, Any]:
    return {"revision": commit, "requested_revision": repository.revision, "resolved_by": by, "verified": verified}


def _say(repository: Repository, text: str) -> None:
    print(f"model {repository.label!r}: {text}", flush=True)


@contextlib.contextmanager
def _settings(label: str) -> Iterator[None]:
    """Let the library keep what arrived before an interruption, and say of one no address, which can hold a signature."""

    def resumed(record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING and "rror while downloading" in record.getMessage():
            print(f"model {label!r}: the connection was lost, resuming", flush=True)
        return False

    logger, chunk = logging.getLogger("huggingface_hub.file_download"), constants.DOWNLOAD_CHUNK_SIZE
    requests = logging.getLogger("huggingface_hub.utils._http")
    constants.DOWNLOAD_CHUNK_SIZE = min(chunk, _CHUNK)  # a chunk that is cut is lost, and progress is seen per chunk
    logger.addFilter(resumed)
    requests.addFilter(resumed)
    try:
        yield
    finally:
        logger.removeFilter(resumed)
        requests.removeFilter(resumed)
        constants.DOWNLOAD_CHUNK_SIZE = chunk


def _patiently(call: Callable[[], _Answer]) -> _Answer:
    """Call until it answers or fails for good, with pauses between."""
    for pause in _PAUSES:
        try:
            return call()
        except Exception as error:
            if not hub_errors.is_passing(error):
                raise
            time.sleep(pause)
    return call()


def _ask(repository: Repository) -> tuple[str, dict[str, Listed]]:
    """The commit of the revision and the files in it."""
    info = _patiently(
        lambda: HfApi().model_info(
            repository.id,
            revision=repository.revision,
            files_metadata=True,
            timeout=constants.HF_HUB_ETAG_TIMEOUT,
        )
    )
    if not info.sha or not _COMMIT.fullmatch(info.sha):
        raise ModelError(f"{hub_errors.host()} names no commit of {repository.id}; correct HF_ENDPOINT.")
    listing: dict[str, Listed] = {}
    for file in info.siblings or []:
        digest = file.lfs.sha256 if file.lfs else file.blob_id
        listing[file.rfilename] = Listed(file.lfs.size if file.lfs else file.size, digest)
    return info.sha, listing


def _download_all(repository: Repository, commit: str, listing: dict[str, Listed]) -> tuple[dict[str, Path], bool]:
    """Bring the small files, refuse what runs code, then bring the weights; whether every file had a hash."""
    where = f"{repository.id} at {commit}"
    weights = weight_file(listing, repository.loader, where)
    names = describing_files(listing, repository.loader) + ([INDEX] if weights == INDEX else [])
    meter = Meter(f"model {repository.label!r}: bytes of {repository.id}")
    files, hashed = {}, []
    for name in names:
        files[name], known = _download(repository, commit, name, listing[name], meter)
        hashed.append(known)
    refuse_code(files.values())
    parts = sorted(shards_of(files[INDEX])) if weights == INDEX else [weights]
    absent = next((name for name in parts if name not in listing), None)
    if absent is not None:
        raise ModelError(f"{where} lacks the shard {absent!r} that its {INDEX} names; write another revision.")
    meter.total = sum(listing[name].size or 0 for name in [*names, *parts])
    for name in parts:
        files[name], known = _download(repository, commit, name, listing[name], meter)
        hashed.append(known)
    return files, all(hashed)


def _download(repository: Repository, commit: str, name: str, listed: Listed, meter: Meter) -> tuple[Path, bool]:
    """Bring one file into the cache and verify it."""

    def attempt() -> str:
        return hf_hub_download(repository.id, name, revision=commit, tqdm_class=meter.begin(name, listed.size))

    try:
        path = Path(_patiently(attempt))
    except ModelError:
        raise
    except Exception as error:
        raise hub_errors.sentence(error, repository.id, commit, name) from None
    meter.finish(path.stat().st_size)
    return path, _verify(repository, name, path, listed)


def _verify(repository: Repository, name: str, path: Path, listed: Listed) -> bool:
    """Compare a cached file with what the hub (or its name in the cache) says; whether there was a hash to compare with.

    Raises:
        ModelError: they differ. The file is removed, so that the next run fetches it again.
    """
    blob = Path(path.parent, path.readlink()) if path.is_symlink() else path
    digest = listed.digest or (blob.name if path.is_symlink() and _HASH.fullmatch(blob.name) else None)
    size = path.stat().st_size
    if listed.size in (None, size) and (digest is None or _digest(path, len(digest)) == digest):
        return digest is not None
    try:
        path.unlink()
        blob.unlink(missing_ok=True)
        removed = "it was removed: run again"
    except OSError:
        removed = f"delete {blob} and {path}, then run again"
    raise ModelError(
        f"{name} of {repository.id} is not what {hub_errors.host()} lists: {size:,} bytes with a hash other than {digest}; "
        f"{removed} (a proxy or a full disk may have altered it)."
    )


def _digest(path: Path, length: int) -> str:
    """The sha256 of a file, or git's sha1 of it where ``length`` is 40."""
    if length != 40:
        return file_digest(path)
    state = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def _folder(repository: Repository) -> Path:
    return Path(constants.HF_HUB_CACHE).expanduser() / repo_folder_name(repo_id=repository.id, repo_type="model")


def _remember(repository: Repository, commit: str) -> None:
    """Note in the cache, as the library does, what a tag or branch stands for, for a run without network."""
    with contextlib.suppress(OSError):
        write_text(_folder(repository) / "refs" / repository.revision, commit)


def _known_commit(repository: Repository) -> str | None:
    """The commit of a tag or branch as the cache remembers it."""
    reference = _folder(repository) / "refs" / repository.revision
    commit = reference.read_text("utf-8").strip() if reference.is_file() else ""
    return commit if _COMMIT.fullmatch(commit) else None


def _held(repository: Repository, commit: str) -> dict[str, Path] | None:
    """The files of a commit that the cache holds; None where it lacks one that is needed."""
    snapshot = _folder(repository) / "snapshots" / commit
    names = [path.name for path in snapshot.iterdir() if path.is_file()] if snapshot.is_dir() else []
    try:
        weights = weight_file(names, repository.loader, repository.id)
        parts = sorted(shards_of(snapshot / INDEX)) if weights == INDEX else [weights]
    except ModelError:
        return None
    if not is_whole(names, repository.loader) or any(part not in names for part in parts):
        return None
    index = [INDEX] if weights == INDEX else []
    return {name: snapshot / name for name in [*describing_files(names, repository.loader), *index, *parts]}


def _check_held(repository: Repository, files: dict[str, Path]) -> bool:
    """Compare files of the cache with the hashes they are named by; whether all had one."""
    return min([_verify(repository, name, path, Listed(None, None)) for name, path in files.items()])
