"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.web.app import create_app as create_app
from foretell.web.background_runs import BackgroundRuns as BackgroundRuns
from foretell.web.middleware import MAX_BODY_BYTES as MAX_BODY_BYTES
from foretell.web.security import AccessRules as AccessRules
from foretell.web.security import COOKIE as COOKIE
from foretell.web.site import WrittenSite as WrittenSite
from foretell.web.site import file_of as file_of
from foretell.web.site import write_site as write_site
