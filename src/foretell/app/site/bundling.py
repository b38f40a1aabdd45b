"""Our modules as plain scripts: browsers load no modules from disk."""

import re
from collections.abc import Callable

IMPORT = re.compile(r"^import \{ ([^}]*) \} from '\./([\w.]+)';\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)


def bundle(name: str, read: Callable[[str], str]) -> str:
    r"""A module with everything it imports, as one script that leaves no name behind.

    >>> texts = {"a.js": "import { b } from './b.js';\nb();\n", "b.js": "export function b() {}\n"}
    >>> print(bundle("a.js", texts.__getitem__))
    (() => {
    const _b_js = (() => {
    function b() {}
    return { b };
    })();
    const { b } = _b_js;
    b();
    })();
    <BLANKLINE>
    """
    done: list[str] = []
    body = _module(name, read, {}, done)
    return "(() => {\n" + "".join(done) + body + "})();\n"


def _module(name: str, read: Callable[[str], str], known: dict[str, str], done: list[str]) -> str:
    text = read(name)
    for found in IMPORT.finditer(text):
        other = found[2]
        if other not in known:
            known[other] = "_" + re.sub(r"\W", "_", other)
            inner = _module(other, read, known, done)
            names = ", ".join(EXPORT.findall(read(other)))
            done.append(f"const {known[other]} = (() => {{\n{inner}return {{ {names} }};\n}})();\n")
    text = IMPORT.sub(lambda found: f"const {{ {found[1]} }} = {known[found[2]]};\n", text)
    return EXPORT.sub("", text)
