"""A tree file in other forms, by the name of the form."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foretell.forecasters.tree.files.tree_file import TreeFile

FORMS = ("problog", "bif", "xmlbif", "dot", "mermaid", "markdown", "html", "json", "circuit")


def tree_form(found: "TreeFile", form: str) -> str:
    """The file in one of `FORMS`."""
    import json
    from importlib import import_module

    from foretell.forecasters.tree.whatif.whatif import compare

    plain = {
        "problog": ("problog", "to_problog"),
        "bif": ("bayes_net", "to_bif"),
        "xmlbif": ("bayes_net", "to_xmlbif"),
        "dot": ("graphs", "to_dot"),
        "mermaid": ("graphs", "to_mermaid"),
    }
    if form in plain:
        module, name = plain[form]
        return getattr(import_module(f"foretell.forecasters.tree.export.{module}"), name)(found.tree)
    if form == "json":
        from foretell.forecasters.tree.files.tree_file import tree_text

        return tree_text(found.tree, found.scenarios)
    if form == "circuit":
        from foretell.forecasters.tree.influence.sensitivity import worked_out

        return json.dumps(worked_out(found.tree)[0].to_dict(), ensure_ascii=False) + "\n"
    outcomes = compare(found.tree, found.scenarios.values())
    if form == "markdown":
        from foretell.forecasters.tree.export.markdown import to_markdown

        return to_markdown(found.tree, outcomes)
    from foretell.arena.report.tree_page import tree_page

    return tree_page(found.tree, outcomes)
