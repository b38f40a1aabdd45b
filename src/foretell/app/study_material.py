"""What a study looks at, as the command line says it: tables, runs of this machine, trees, or a made-up world."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from foretell.questions.problems import InputError

if TYPE_CHECKING:
    from foretell.arena.study import Material, Progress

TREES, WORLD, SIDES = "tree", ("worlds", "leaves"), ("costs", "cast")
"""The first word of studies of trees; options that say how large a made-up world is; tables beside forecasts."""


def study_named(words: tuple[str, ...], others: Iterable[str] = ()) -> str:
    """The study that is meant: `tree noise` is tree-noise, and `tree stability` is stability.

    `others` are names that may be meant where there is no such study.

    >>> study_named(("tree", "noise")), study_named(("tree", "stability")), study_named(("trials",))
    ('tree-noise', 'stability', 'trials')
    """
    from foretell.arena.studies.catalog import SIMULATED, require_study

    whole, rest = "-".join(words), "-".join(words[1:])
    if words[0] == TREES and rest in SIMULATED:
        return rest
    require_study(whole, others)
    return whole


def study_material(name: str, options: Mapping[str, Any], progress: "Progress") -> "Material":
    """What the options give; a made-up world where they give nothing and the study has one."""
    from foretell.arena.studies.catalog import SIMULATED
    from foretell.evaluate.bootstrap import Resampling

    how = Resampling(draws=options["draws"], seed=options["seed"])
    given: dict[str, Any] = {"chosen": options["chosen"], "resampling": how, "progress": progress}
    ways = [way for way in ("folder", "forecasts", "runs", "trees") if options[way]]
    if len(ways) > 1:
        raise InputError("a study looks at one thing", hint="give one of --data, --forecasts, --run and --trees")
    for option in (*WORLD, *SIDES):
        if options[option] and (name not in SIMULATED or (option in WORLD) == bool(ways)):
            where = "a made-up world" if option in WORLD else "the forecasts of a study of trees"
            raise InputError(f"--{option} is about {where}", hint="leave it out, or see foretell study --help")
    if name in SIMULATED:
        return _with_sides(_of_trees(options, given), options)
    if options["runs"]:
        return _of_runs(options, given)
    if not (options["folder"] or options["forecasts"]):
        raise InputError("a study needs trials", hint="give --data DIR, --forecasts and --outcomes, or --run RUN")
    from foretell.arena.study import Material

    return Material(**_tables(options), **given)


def _of_trees(options: Mapping[str, Any], given: Mapping[str, Any]) -> "Material":
    from foretell.arena.studies.tree.material import TreeMaterial, read_trees
    from foretell.arena.studies.tree.play import Scene

    if options["runs"]:
        return _of_runs(options, given)
    if options["trees"]:
        folders = {folder.name: read_trees(folder) for folder in options["trees"]}
        return TreeMaterial(tables={}, trees=folders, **given)
    if options["folder"] or options["forecasts"]:
        return TreeMaterial(**_tables(options), **given)
    scene = Scene()
    scene = replace(
        scene,
        worlds=options["worlds"] or scene.worlds,
        settings=replace(scene.settings, leaves=options["leaves"] or scene.settings.leaves),
    )
    return TreeMaterial(tables={}, scene=scene, **given)


def _of_runs(options: Mapping[str, Any], given: Mapping[str, Any]) -> "Material":
    from foretell.app.settings import load_settings
    from foretell.app.stored_runs import material_of_runs

    return material_of_runs(load_settings(), options["runs"], given, outcomes=options["outcomes"])


def _with_sides(material: "Material", options: Mapping[str, Any]) -> "Material":
    """With what the tables beside the forecasts say; they go before what runs have noted themselves."""
    from foretell.arena.studies.tree.material import TreeMaterial
    from foretell.arena.studies.tree.side_tables import read_cast_table, read_cost_table

    assert isinstance(material, TreeMaterial)
    costs = read_cost_table(options["costs"]) if options["costs"] else {}
    cast = read_cast_table(options["cast"]) if options["cast"] else {}
    for path, table in ((options["costs"], costs), (options["cast"], cast)):
        for name in table:
            if name not in material.tables:
                raise InputError(f"no forecaster is called {name!r}", path=path, column="forecaster")
    return replace(material, costs={**material.costs, **costs}, cast={**material.cast, **cast})


def _tables(options: Mapping[str, Any]) -> dict[str, Any]:
    if options["folder"]:
        from foretell.arena.trial_tables import PAPER, Known, trial_tables

        outcome = "paper_outcome" if options["paper_outcomes"] else "outcome"
        known = Known(price=options["price"], prior=options["prior"], outcome=outcome)
        folder, prefix = options["folder"], options["prefix"]
        return {
            "tables": trial_tables(folder, prefix, known),
            "paper": lambda: trial_tables(folder, prefix, PAPER),
        }
    if not options["outcomes"]:
        raise InputError("a study needs outcomes", hint="give --outcomes beside --forecasts")
    from foretell.arena.examples import read_examples

    return {"tables": read_examples(options["forecasts"], options["outcomes"])}
