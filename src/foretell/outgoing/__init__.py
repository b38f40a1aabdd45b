"""Requests that leave this program: connections, and the rules for when and how often a request is sent."""

from foretell.interface import offer

HOMES = {
    "foretell.outgoing.client": (
        "Answer AnswerTooLarge ConnectionBroke Connections FunctionTransport IncomingAnswer NotConnected OutgoingError "
        "HttpRequest Transport UnreadableBody Unsendable address_of trusted_certificates"
    ),
    "foretell.outgoing.limiter": (
        "DatabaseLimits Limit LimitStore Limiter MemoryLimits PlaceClosed PlaceState Taken Wants fair_shares"
    ),
    "foretell.outgoing.public_address": "is_public leads_inside",
    "foretell.outgoing.retry": "RetryRule may_pass",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
