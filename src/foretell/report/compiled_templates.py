"""Compiled templates, kept in files beside their sources as Python keeps compiled modules.

Compiling the templates of one page takes up to 0.3 s, which the first page of every new process would wait for.
"""

import sys
from contextlib import suppress
from importlib.metadata import version
from importlib.util import cache_from_source
from io import BytesIO
from pathlib import Path
from pickle import UnpicklingError

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from foretell.data.files import write_atomically


class CompiledTemplates(BytecodeCache):
    """Keeps compiled templates where Python keeps compiled modules, and only if it does.

    A file counts as long as the template, Jinja and the `options` it was compiled with are the same. Filters are looked
    up when a template is rendered, so they may differ.
    """

    def __init__(self, options: str) -> None:
        self._compiled_with = f"{version('jinja2')} {options}\n"

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """Return the path of the file; empty for a template that has no file."""
        return "" if filename is None else str(Path(cache_from_source(f"{filename}.py")).with_suffix(".jinja"))

    def get_source_checksum(self, source: str) -> str:
        """Return a checksum of all that determines the compiled template."""
        return super().get_source_checksum(self._compiled_with + source)

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read the file of a template if there is one; a damaged file counts as none."""
        with suppress(OSError, EOFError, UnpicklingError):
            bucket.load_bytecode(BytesIO(Path(bucket.key).read_bytes() if bucket.key else b""))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write the file of a template, unless the folder cannot be written to."""
        if bucket.key and not sys.dont_write_bytecode:
            with suppress(OSError):
                write_atomically(Path(bucket.key), bucket.bytecode_to_string())
