"""Tell IP addresses on the public internet from private and reserved ones."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable

_GLOBAL = ipaddress.IPv6Network("2000::/3")
"""The IPv6 range of public addresses. Other addresses are wrapped, local or reserved."""
_RESERVED = (ipaddress.IPv6Network("3fff::/20"), ipaddress.IPv4Network("192.88.99.0/24"))
"""Reserved for documentation and for relays."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP = 0x5EFE
"""Marker in front of an IPv4 address within an IPv6 address that tunnels to it."""
_HOSTS_OF_CLOUDS = frozenset({"168.63.129.16"})
"""Public addresses at which a cloud provider serves its machines their secrets."""


def is_public(address: str) -> bool:
    """Return whether an IP address is on the public internet. IPv4 addresses wrapped in IPv6 are unwrapped.

    >>> is_public("93.184.216.34"), is_public("10.0.0.1"), is_public("::ffff:127.0.0.1"), is_public("169.254.169.254")
    (True, False, False, False)
    >>> is_public("::127.0.0.1"), is_public("64:ff9b:1::7f00:1"), is_public("fec0::1"), is_public("2606:4700::1111")
    (False, False, False, True)
    """
    try:
        ip = ipaddress.ip_address(address.split("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in _NAT64 or int(ip) >> 32 & 0xFDFFFFFF == _ISATAP:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is None and ip not in _GLOBAL:
            return False
        ip = inner or ip
    reserved = any(ip in network for network in _RESERVED) or str(ip) in _HOSTS_OF_CLOUDS
    return ip.is_global and not ip.is_multicast and not reserved


def leads_inside(host: str) -> bool:
    """Return whether a host is a private IP address or localhost.

    >>> leads_inside("127.0.0.1"), leads_inside("[::1]"), leads_inside("localhost"), leads_inside("example.org")
    (True, True, True, False)
    """
    bare = host.strip("[]").rstrip(".").lower()
    if bare == "localhost" or bare.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(bare.split("%")[0])
    except ValueError:
        # 127.1, 0x7f000001 and 2130706433 also work as addresses.
        return bool(bare) and all(part.isalnum() and part[0].isdigit() for part in bare.split("."))
    return not is_public(bare)


Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Resolves a host and port to IP addresses."""


async def look_up(host: str, port: int) -> list[str]:
    """Return the IP addresses that a host name resolves to."""
    rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in rows))
