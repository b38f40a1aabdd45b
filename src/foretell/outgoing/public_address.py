"""Tell IP addresses on the public internet from private and reserved ones."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable

_GLOBAL = ipaddress.IPv6Network("2000::/3")
"""The IPv6 range from which public addresses are allocated; anything else is wrapped, local or reserved."""
_RESERVED = (ipaddress.IPv6Network("3fff::/20"), ipaddress.IPv4Network("192.88.99.0/24"))
"""Reserved for documentation, and for relays to unknown places."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP = 0x5EFE
"""Marker in front of an IPv4 address within an IPv6 address that tunnels to it."""
_HOSTS_OF_CLOUDS = frozenset({"168.63.129.16"})
"""Public addresses at which a cloud provider serves its own machines, including their secrets."""


def is_public(address: str) -> bool:
    """Whether an IP address lies on the public internet, even if it is an IPv4 address wrapped in IPv6.

    >>> is_public("93.184.216.34"), is_public("10.0.0.1"), is_public("::ffff:127.0.0.1"), is_public("169.254.169.254")
    (True, False, False, False)
    >>> is_public("::127.0.0.1"), is_public("64:ff9b:1::7f00:1"), is_public("fec0::1"), is_public("2606:4700::1111")
    (False, False, False, True)
    """
    try:
        found = ipaddress.ip_address(address.split("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if found in _NAT64 or int(found) >> 32 & 0xFDFFFFFF == _ISATAP:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is None and found not in _GLOBAL:
            return False
        found = inner or found
    reserved = any(found in network for network in _RESERVED) or str(found) in _HOSTS_OF_CLOUDS
    return found.is_global and not found.is_multicast and not reserved


def leads_inside(host: str) -> bool:
    """Whether a host is written as an internal address: a private IP address, or localhost.

    >>> leads_inside("127.0.0.1"), leads_inside("[::1]"), leads_inside("localhost"), leads_inside("example.org")
    (True, True, True, False)
    """
    bare = host.strip("[]").rstrip(".").lower()
    if bare == "localhost" or bare.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(bare.split("%")[0])
    except ValueError:
        # 127.1, 0x7f000001 and 2130706433 are addresses too, for those who connect.
        return bool(bare) and all(part.isalnum() and part[0].isdigit() for part in bare.split("."))
    return not is_public(bare)


Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Resolves a host and port to IP addresses."""


async def look_up(host: str, port: int) -> list[str]:
    """Return the IP addresses that a host name resolves to."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))
