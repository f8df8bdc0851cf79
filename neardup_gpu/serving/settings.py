"""Settings of the service."""

from __future__ import annotations

from .. import checks
from ..records import dataclass
from ..settings import setting

TOKEN = "NEARDUP_TOKEN"
"""The environment variable that holds the token which requests have to show."""


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Set the address of the service and the limits of requests.

    Parameters
    ----------
    host : str, default "127.0.0.1"
        The address to listen at. Another machine reaches the service only at another address, such as "0.0.0.0".
    port : int, default 8000
        The port; 0 takes a free one, which the log names.
    max_documents : int, default 1000
        Maximum number of documents or ids per request.
    max_body : int, default 8388608
        Maximum size of a request, in bytes.
    queue : int, default 10000
        Maximum number of documents that wait for the writer; more are refused with status 503.
    max_requests : int, default 256
        Maximum number of requests at a time; more are refused with status 503.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a number is out of range or a value has another type.

    Examples
    --------
    >>> Serving().host
    '127.0.0.1'
    """

    host: str = setting("127.0.0.1", "Address to listen at; 0.0.0.0 is every address of this machine.", metavar="HOST")
    port: int = setting(8000, "Port to listen at; 0 takes a free one.", metavar="N")
    max_documents: int = setting(1000, "Maximum number of documents or ids per request.", metavar="N")
    max_body: int = setting(8 << 20, "Maximum bytes of a request.", metavar="N", shown="8 MiB")
    queue: int = setting(10_000, "Maximum number of documents that wait for the writer.", metavar="N")
    max_requests: int = setting(256, "Maximum number of requests at a time.", metavar="N")

    def __post_init__(self) -> None:
        checks.text("host", self.host)
        checks.integer("port", self.port, 0, 65535)
        for name in ("max_documents", "max_body", "queue", "max_requests"):
            checks.integer(name, getattr(self, name), 1)
