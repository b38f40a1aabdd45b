"""The report's colours as a style sheet for pages that can be switched between light and dark."""

from foretell.arena.report.theme import DIVERGING, ON_DIVERGING, PALETTE, Pair, figure_rules


def theme_css() -> str:
    """Colours follow the system unless the visitor chose; figures bring their classes."""
    steps: dict[str, Pair] = {f"d{i}": pair for i, pair in enumerate(DIVERGING)}
    on_steps: dict[str, Pair] = {f"o{i}": pair for i, pair in enumerate(ON_DIVERGING)}
    colours = PALETTE | steps | on_steps
    light = "".join(f"--ft-{name}:{pair[0]};" for name, pair in colours.items())
    dark = "".join(f"--ft-{name}:{pair[1]};" for name, pair in colours.items())
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f":root[data-theme=light]{{color-scheme:light}}\n"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n"
        f"{figure_rules()}\n"
    )
