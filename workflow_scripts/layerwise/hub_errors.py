"""What went wrong between here and the hub, as one sentence that repeats neither a token nor what a server wrote."""

import errno
from urllib.parse import urlsplit

import httpx2
from huggingface_hub import constants
from huggingface_hub.errors import (
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from layerwise.atomic import disk_full
from layerwise.errors import LayerwiseError, ModelError

_BUSY = (408, 429, 500, 502, 503, 504)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def host() -> str:
    """Return the name and port of the hub, without what else its address may hold."""
    address = urlsplit(constants.ENDPOINT)
    return f"{address.hostname}{f':{address.port}' if address.port else ''}"


def cause(error: BaseException) -> BaseException:
    """Return the answer of the server, or the fault of the network, that the hub's library wrapped in ``error``."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, httpx2.HTTPError | OfflineModeIsEnabled | FileMetadataError):
        inner = inner.__cause__ or inner.__context__
    return inner or error


def is_passing(error: BaseException) -> bool:
    """Whether trying again may help: a busy server, a cut connection, a file that arrived short."""
    inner = cause(error)
    if isinstance(inner, HfHubHTTPError):
        return inner.response.status_code in _BUSY
    return isinstance(inner, httpx2.TransportError) or (type(inner) is OSError and inner.errno is None)


def is_unreachable(error: BaseException) -> bool:
    """Whether the hub could not be asked, so that a cache has to answer."""
    return is_passing(error) or isinstance(cause(error), OfflineModeIsEnabled)


def sentence(
    error: Exception, repository: str, revision: str, file: str | None = None, kind: type[LayerwiseError] = ModelError
) -> LayerwiseError:
    """Return the error to raise for ``error``.

    Args:
        error: raised by huggingface_hub.
        repository: ORG/NAME of a model, or datasets/ORG/NAME.
        revision: the commit, tag or branch that was asked for.
        file: what was being downloaded, if anything.
        kind: class of the error.
    """
    inner = cause(error)
    page = f"https://huggingface.co/{repository}"
    status = inner.response.status_code if isinstance(inner, HfHubHTTPError) else None
    if isinstance(inner, GatedRepoError):
        text = f"{repository} is gated: accept its conditions at {page} and set HF_TOKEN to a token of that account."
    elif isinstance(inner, RevisionNotFoundError):
        text = f"{repository} has no revision {revision!r}; {page}/commits/main lists its commits, write one of them."
    elif isinstance(inner, RemoteEntryNotFoundError):
        text = f"{repository} lists {file!r} at {revision} and does not serve it; write another revision."
    elif status in (401, 403):
        text = (
            f"{host()} refused {repository} (status {status}): it does not exist, is private or gated; see {page}, and set "
            "HF_TOKEN to a token of an account that may read it."
        )
    elif status == 404 or isinstance(inner, RepositoryNotFoundError):
        text = f"{repository} or its revision {revision!r} was not found at {host()} (status 404); compare them with {page}."
    elif status is not None:
        text = f"{host()} answered {repository} with status {status}; run again later, what has arrived is kept."
    elif isinstance(inner, FileMetadataError):
        text = f"{host()} does not answer as a hub does (no commit or ETag for {file!r}); correct HF_ENDPOINT."
    elif isinstance(inner, OSError) and inner.errno in _FULL:
        return disk_full(f"{constants.HF_HUB_CACHE}/{file}")
    elif is_unreachable(error):
        text = (
            f"{file or 'the list of files'} of {repository} did not arrive from {host()} ({_fault(inner)}): run again with "
            "a network, or give what it holds as a 'path' on this machine."
        )
    else:
        text = (
            f"{file or 'the list of files'} of {repository} cannot be stored in {constants.HF_HUB_CACHE} ({_fault(inner)}); "
            "set HF_HOME to a folder that can be written."
            if isinstance(inner, OSError)
            else f"{file or 'the list of files'} of {repository} cannot be downloaded ({_fault(inner)}); run again."
        )
    return kind(text)


def _fault(error: BaseException) -> str:
    """The kind of ``error``, without its text, which can hold signed addresses."""
    if isinstance(error, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set"
    if type(error) is OSError and error.errno is None:
        return "it was cut short"
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else type(error).__name__
