"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.outgoing.client import Answer as Answer
from foretell.outgoing.client import AnswerTooLarge as AnswerTooLarge
from foretell.outgoing.client import ConnectionBroke as ConnectionBroke
from foretell.outgoing.client import Connections as Connections
from foretell.outgoing.client import FunctionTransport as FunctionTransport
from foretell.outgoing.client import IncomingAnswer as IncomingAnswer
from foretell.outgoing.client import NotConnected as NotConnected
from foretell.outgoing.client import OutgoingError as OutgoingError
from foretell.outgoing.client import OutgoingRequest as OutgoingRequest
from foretell.outgoing.client import Transport as Transport
from foretell.outgoing.client import UnreadableBody as UnreadableBody
from foretell.outgoing.client import Unsendable as Unsendable
from foretell.outgoing.client import address_of as address_of
from foretell.outgoing.client import trusted_certificates as trusted_certificates
from foretell.outgoing.public_address import is_public as is_public
from foretell.outgoing.public_address import leads_inside as leads_inside
from foretell.outgoing.retry import RetryRule as RetryRule
from foretell.outgoing.retry import may_pass as may_pass
