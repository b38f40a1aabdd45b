"""Colours of every figure and page, light and dark, and the style sheets made from them."""

from markupsafe import Markup

ColourPair = tuple[str, str]
"""The light and the dark colour of a role."""

PALETTE: dict[str, ColourPair] = {
    "paper": ("#ffffff", "#14171c"),
    "ground": ("#f8f9fa", "#0e1115"),
    "panel": ("#f4f6f8", "#1d2128"),
    "ink": ("#1c2129", "#e7eaf0"),
    "muted": ("#586170", "#a3acba"),
    "grid": ("#e2e5ea", "#2c323b"),
    "axis": ("#98a1ae", "#656f7d"),
    "a": ("#1f62ab", "#71b4f7"),
    "b": ("#c73b16", "#de8755"),
    "c": ("#1b7a4b", "#6ea57f"),
    "d": ("#912c96", "#b48dbc"),
    "e": ("#7b6607", "#d9bd4c"),
    "f": ("#9d1a52", "#ffa6b9"),
    "g": ("#0b5578", "#56f5e7"),
    "h": ("#6b4a2f", "#d2ab87"),
    "i": ("#2b2f77", "#a5abff"),
    "j": ("#a5149a", "#f49be8"),
    "k": ("#4f6b00", "#b5d34a"),
    "l": ("#47566a", "#b8c6d4"),
    "m": ("#bd2424", "#ff8279"),
    "highlight": ("#fff3d6", "#3a3118"),
}

DIVERGING: tuple[ColourPair, ...] = (
    ("#b35806", "#f6a860"),
    ("#e59134", "#d07f37"),
    ("#fdc382", "#7d4a1f"),
    ("#fee6c8", "#4a3423"),
    ("#f0f2f4", "#272c34"),
    ("#d9e9f3", "#20384c"),
    ("#9fcbe2", "#245479"),
    ("#5ea5cf", "#4f9bd3"),
    ("#2166ac", "#86c6f5"),
)
"""Colour steps from worse (orange) to better (blue), distinguishable with every common kind of colour vision."""

ON_DIVERGING: tuple[ColourPair, ...] = (
    ("#ffffff", "#14171c"),
    ("#1c2129", "#14171c"),
    ("#1c2129", "#ffffff"),
    *((("#1c2129", "#e7eaf0"),) * 3),
    ("#1c2129", "#ffffff"),
    ("#1c2129", "#14171c"),
    ("#ffffff", "#14171c"),
)
"""Text colour on each step of `DIVERGING`."""

SERIES = ("a", "b", "c", "d", "f", "g", "h", "i", "j", "k", "l", "m")
"""Colour names of the twelve series; "e" is reserved for the market."""


def _colours() -> dict[str, ColourPair]:
    steps = {f"d{i}": pair for i, pair in enumerate(DIVERGING)}
    on_steps = {f"o{i}": pair for i, pair in enumerate(ON_DIVERGING)}
    return PALETTE | steps | on_steps


def colour_variables(*, switchable: bool = False) -> str:
    """Return CSS custom properties for both colour schemes; print is always light.

    Colours follow the system, unless they are `switchable` and the page sets `data-theme`.
    """
    light = "".join(f"--ft-{name}:{pair[0]};" for name, pair in _colours().items())
    dark = "".join(f"--ft-{name}:{pair[1]};" for name, pair in _colours().items())
    root = ":root:not([data-theme=light])" if switchable else ":root"
    rules = f":root{{color-scheme:light dark;{light}}}@media screen and (prefers-color-scheme:dark){{{root}{{{dark}}}}}"
    if switchable:
        rules += ":root[data-theme=light]{color-scheme:light}"
        rules += f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}"
    return rules


def figure_rules(*, plain: bool = False) -> str:
    """Return the CSS classes that charts use.

    Every colour is given twice, literally and as a variable: a renderer without support for variables (librsvg,
    Inkscape) uses the literal one. With `plain`, there are only light colours, and fonts that every converter knows.
    """

    def colour(selector: str, role: str, name: str, light: str) -> str:
        variable = "" if plain else f";{role}:var(--ft-{name})"
        return f".ft {selector}{{{role}:{light}{variable}}}"

    font = "font:12.5px/1.2 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
    font = "font-size:12.5px;font-family:Arial,Helvetica,sans-serif" if plain else font
    rules = [
        f".ft{{{font};font-variant-numeric:tabular-nums}}",
        colour("text", "fill", "ink", PALETTE["ink"][0]),
        ".ft .s{font-size:12px}.ft .xs{font-size:11.5px}.ft .h{font-size:13px;font-weight:600}.ft .w{font-weight:600}",
        ".ft .m{text-anchor:middle}.ft .r{text-anchor:end}",
        colour(".k", "fill", "muted", PALETTE["muted"][0]),
        ".ft .dash{stroke-dasharray:4 3}.ft .dots{stroke-dasharray:1.5 2.5}.ft .no{fill:none}",
        ".ft .thin{stroke-width:1}.ft .line{stroke-width:1.5}.ft .bold{stroke-width:2}",
        ".ft .soft{opacity:.35}.ft .bar{opacity:.75}.ft .band{opacity:.14}.ft .hit{opacity:0}.ft .faint{opacity:.3}",
    ]
    for name, (light, _) in PALETTE.items():
        rules += [colour(f".f-{name}", "fill", name, light), colour(f".l-{name}", "stroke", name, light)]
    for i, ((light, _), (text, _)) in enumerate(zip(DIVERGING, ON_DIVERGING, strict=True)):
        rules += [colour(f".f-d{i}", "fill", f"d{i}", light), colour(f".f-o{i}", "fill", f"o{i}", text)]
    return "".join(rules)


def figure_style() -> Markup:
    """Return the style element of a standalone chart, with its own colours and background."""
    background = ".ft{background:#ffffff;background:var(--ft-paper)}"
    return Markup(f"<style>{colour_variables()}{figure_rules()}{background}</style>")
