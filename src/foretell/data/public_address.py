"""Which numeric addresses lie on the public internet, and which behind somebody's door."""

import ipaddress

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


def is_public(address: str) -> bool:
    """Whether a numeric address lies on the public internet, also where it is wrapped in IPv6.

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
        if found in _LOCAL_NAT64 or found.is_site_local:
            return False
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if found in _NAT64 or found in _COMPATIBLE:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        found = inner or found
    return found.is_global and not found.is_multicast


def leads_inside(host: str) -> bool:
    """Whether a host is written as an address behind a door: a private number, or this machine by name.

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
