"""Which addresses may be fetched: the public web, and not the machines behind our own door."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from urllib.parse import SplitResult, urlsplit

from foretell.sources.page import PageUnavailable

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Host and port → numeric addresses."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class PublicWeb:
    """Admits http and https addresses whose host lies on the public internet.

    The address that was checked is the one connected to, so a name cannot lead elsewhere between the two.
    """

    def __init__(self, *, allow_private: bool = False, resolve: Resolve | None = None) -> None:
        self._allow_private = allow_private
        self._resolve = resolve or _looked_up

    async def admit(self, url: str) -> str | None:
        """The numeric host to connect to, None for any; `PageUnavailable` where it may not be fetched."""
        parts = _web_address(url)
        if self._allow_private:
            return None
        host = parts.hostname or ""
        try:
            addresses = await self._resolve(host, parts.port or (443 if parts.scheme == "https" else 80))
        except (OSError, UnicodeError):
            raise PageUnavailable(f"{url}: the host {host} is not known") from None
        if not addresses or not all(is_public(one) for one in addresses):
            raise PageUnavailable(f"{url}: {host} is not on the public web")
        return min(addresses, key=lambda one: ":" in one)


def is_public(address: str) -> bool:
    """Whether a numeric address lies on the public internet, also where it is wrapped in IPv6.

    >>> is_public("93.184.216.34"), is_public("10.0.0.1"), is_public("::ffff:127.0.0.1"), is_public("169.254.169.254")
    (True, False, False, False)
    """
    try:
        found = ipaddress.ip_address(address.split("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        found = inner or found
    return found.is_global and not found.is_multicast


def _web_address(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise PageUnavailable(f"{url}: not a web address") from None
    if not usable:
        raise PageUnavailable(f"{url}: only http and https addresses can be fetched")
    if parts.username or parts.password:
        raise PageUnavailable(f"{parts.scheme}://{parts.hostname}: an address with a user name is not fetched")
    return parts


async def _looked_up(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))
