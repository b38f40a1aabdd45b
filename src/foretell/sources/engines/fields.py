"""The few shapes of field that every engine's results have."""

from foretell.sources.payload import Payload


def address(one: Payload, name: str) -> str:
    """The web address in a field, which must be there and not empty."""
    found = one.need(name)
    return found.text() or found.wrong("an address")


def text(one: Payload, name: str) -> str:
    """The text in a field that must be there; an explicit null is an empty text."""
    found = one.present(name)
    return "" if found is None else found.text()


def maybe(one: Payload, name: str) -> str | None:
    """The text in a field, or None where there is none."""
    found = one.get(name)
    return None if found is None else found.text()


def texts(one: Payload, name: str) -> list[str]:
    """The texts in a field, none where it is absent."""
    found = one.get(name)
    return [] if found is None else [part.text() for part in found.items()]
