"""Commands and options of version 0.2 with what replaces them, named in the error for an old spelling.

For this version only. A command is named by its words. An option is named alone if every command that had it answers
alike, or after the words of its command.
"""

COMMANDS: dict[str, str] = {
    # Runs.
    "runs resume": "run RUN",
    "runs again": "run RUN --again",
    "runs mv": "runs edit RUN --name NAME",
    "runs tag": "runs edit RUN --tag TAG",
    "runs rm": "runs delete RUN",
    "grids": "grid",
    # Tournaments.
    "tournament metaculus": "tournament run metaculus:SLUG",
    "tournament forecastbench": "tournament run forecastbench",
    "tournament prophet_arena": "tournament run prophet-arena:weekly",
    "tournament prophet-arena": "tournament run prophet-arena:weekly",
    "export": "submit RUN --to forecastbench --out FILE",
    # Studies and audit
    "calibrate report": "study calibration",
    "study aggregation": "study trials --section rules",
    "study audit": "audit RUN",
    "study buildup": "study ablation",
    "study calibration-report": "study calibration --section gain",
    "study consensus": "compare",
    "study conservatism": "study calibration --section hedging",
    "study difficulty": "study variance --section difficulty",
    "study frontier": "score",
    "study habits": "study trajectories",
    "study judge": "study reasoning",
    "study lead-time": "score --by lead_time",
    "study leaks": "audit --filter MODEL",
    "study models": "study ablation",
    "study recalibration": "study calibration --section line",
    "study recall": "study memorization",
    "study smoke": "run SPEC --pilot N",
    "study stability": "study trials --section stability",
    "study threshold": "study calibration --section threshold",
    "study tree": "study tree-noise",
    "study tree-uncertainty": "study tree-noise --section error-bars",
    # Setting up and trying.
    "services": "doctor --services",
    "models update": "models list --update FILE",
    "prompts": "run SPEC --plan --prompts",
    "site": "serve --static FOLDER",
    "arena demo": "demo --arena",
    # Data.
    "questions": "data show SET",
    "fetch": "data show SET --out questions.jsonl",
    "data inspect-log": "score LOG",
    "data build tranche": "data build sample ROUND --resolved-by DATE",
    "data build financial": "data build prices SERIES --cutoff DATE",
    "corpus import": "corpus add FILE",
    # Data, arenas, settings files, the ledger.
    "arena init": "init arena",
    "arena collect": "arena run --once --stage collect",
    "arena context": "arena run --once --stage context",
    "arena forecast": "arena run --once --stage forecast",
    "arena resolve": "arena run --once --stage resolve",
    "arena status": "arena show",
    "ledger head": "ledger",
    "ledger show": "ledger",
    "ledger verify": "ledger --verify",
    # Scores and calibration.
    "errors": "score --errors NAME",
    "plan": "compare --detect POINTS",
    "calibrate ensemble": "calibrate fit --method greedy",
    "calibrate threshold": "calibrate fit --method threshold",
    # Trees.
    "tree check": "tree show TREE",
    "tree export": "tree show TREE --out FILE",
    "tree report": "tree show TREE --out report.html",
    "tree notebook": "tree show TREE --out FOLDER` or `foretell replay TREE",
    "tree ground": "tree update TREE [CLAIM...]",
    "tree expand": "tree update TREE --expand CLAIM",
    "tree resynthesize": "tree update TREE --no-research",
    "tree diff": "tree log TREE --diff A..B",
    "tree history": "tree log TREE",
    "whatif": "tree whatif TREE",
}
"""Words of an old command → the command to type instead, without `foretell`."""
OPTIONS: dict[str, str] = {
    # Settings of a run.
    "--role": "--set models.ROLE=MODEL",
    "--model-price": "--set prices.agent=IN/OUT (or prices.ROLE, prices.MODEL)",
    "--temperature": "--set sampling.temperature=NUMBER",
    "--max-tokens": "--set sampling.max_tokens=NUMBER",
    "--tier": "--set sampling.tier=NAME",
    "--reply-seconds": "--set sampling.reply_seconds=SECONDS",
    "--question-budget": "--set budget.question=DOLLARS",
    "--seed": "--set seed=NUMBER",
    "--strict": "--set strict=true",
    "--late-text": "--set questions.leaky_questions=NAME",
    # Asking.
    "ask --variant": "--set options.variant=NAME",
    "ask --no-crowd": "--set options.market_price=false",
    "ask --no-prior": "--set options.prior=false",
    "ask --steps": "--set options.steps=NUMBER",
    "ask --seconds": "--set options.seconds=NUMBER",
    "ask --reply-format": "--set options.reply_format=NAME",
    "ask --clamp": "--set 'options.clamp=[LOW, HIGH]'",
    "ask --series-sources": "--set 'options.series_sources=[NAME, …]'",
    "ask --no-source-steps": "--set options.source_steps=false",
    "ask --concurrency": "--set concurrency=NUMBER",
    "ask --combine": "--set combine=RULE",
    "ask --due": "--closes DATE",
    "ask --number": "--range LOW:HIGH",
    "ask --low": "--range LOW:HIGH",
    "ask --high": "--range LOW:HIGH",
    "ask --unit": "--range 'LOW:HIGH UNIT'",
    "ask --no-network": "network = false in settings.toml",
    # Runs.
    "run --concurrency": "--set concurrency=NUMBER",
    "run --folder": "--out FOLDER",
    "backtest --folder": "--out FOLDER",
    "backtest --data": "FORETELL_HOME for another folder of pulled rounds",
    "backtest --round": "--set questions.rounds=DATE",
    "backtest --closes-after": "--set questions.closes_after=DATE",
    "backtest --closes-before": "--set questions.closes_before=DATE",
    "backtest --category": "--set questions.category=NAME",
    "grid --concurrency": "concurrency: NUMBER under base: in the file",
    "grid --keep": "--out report.html",
    "runs list --tag": "--find tag:NAME",
    "runs list --state": "--find state:NAME",
    "runs list --model": "--find model:NAME",
    "runs list --questions": "--find set:NAME",
    "runs list --archived": "--find archived:any",
    "runs list --offset": "--limit",
    "runs stop --pause": "--discard",
    "worker --total-concurrency": "workers_concurrency = NUMBER in settings.toml",
    "worker --drop": "foretell runs stop RUN --discard",
    # Tournaments and submissions.
    "tournament run --practice": "foretell practice -- foretell tournament run TOURNAMENT",
    "tournament run --rehearse": "--sandbox",
    "tournament run --degraded": "--include-fallback",
    "tournament run --tournament-budget": "--set tournament.budget=DOLLARS",
    "tournament run --spec": "--config FILE",
    "tournament run --concurrency": "--set concurrency=NUMBER",
    "tournament run --update-after": "--set tournament.update_after=DAYS",
    "tournament run --before-close": "--set tournament.before_close=HOURS",
    "tournament run --comment": "--set tournament.comment=public",
    "tournament run --reasons": "--set tournament.reasons=true",
    "tournament run --no-reasons": "--set tournament.reasons=false",
    "tournament run --past-rounds": "--set tournament.past_rounds=NUMBER",
    "tournament run --stop-before": "--set tournament.stop_before=MINUTES",
    "tournament run --when-open": "--set tournament.when_open=true",
    "tournament run --overwrite": "--set tournament.overwrite=true",
    **{
        f"{command} --{key.replace('_', '-')}": f"--set tournament.{key}={value}"
        for command in ("tournament run", "submit")
        for key, value in (
            ("agent", "NAME"),
            ("organization", "NAME"),
            ("model_organization", "NAME"),
            ("file_number", "NUMBER"),
            ("reasoning", "true"),
            ("incomplete", "true"),
            ("folder", "FOLDER"),
            ("bucket", "gs://BUCKET/FOLDER"),
        )
    },
    "tournament run --entry": "--set tournament.entry=NAME",
    "tournament results --draws": "--bootstrap draws=NUMBER",
    "tournament results --offline": "network = false in settings.toml",
    "submit --degraded": "--include-fallback",
    "submit --model": "--set tournament.entry=NAME",
    "submit --window": "--set tournament.window=NUMBER",
    "submit --combine": "--set combine=RULE",
    "submit --round": "--to forecastbench:DATE",
    # Studies and audit
    "--draws": "--bootstrap draws=N",
    "--keep": "--out FILE.html",
    "audit --closed-book": "--no-tools RUN",
    "audit --seed": "--bootstrap seed=N",
    "audit --unfenced": "--no-filter RUN",
    "study consistency --run": "RUN without --run",
    "study decisions --costs": "columns dollars and seconds in the forecasts",
    "study intervention --model": "--set models.agent=MODEL",
    "study intervention --questions": "--set questions=DATASET",
    "study intervention --round": "--set questions.rounds=[DATE]",
    "study intervention --search": "--set search=[NAME]",
    "study memorization --data": "--questions",
    "study memorization --round": "--questions FILE with those questions",
    "study tree-noise --run": "RUN without --run",
    "study tree-noise --trees": "FOLDER without --trees",
    **{
        f"study {study} {option}": new
        for study in ("trials", "calibration", "ensemble", "variance", "decisions")
        for option, new in {
            **dict.fromkeys(
                ("--data", "--prefix", "--price", "--prior", "--paper-outcomes"),
                "-f and -o; benchmarks/blf_study.py converts the BLF paper's tables",
            ),
            "--config": "a table with these forecasters only",
            "--factors": "columns in the forecasts",
            "--run": "RUN without --run",
            "--seed": "--bootstrap seed=N",
        }.items()
    },
    # Setting up and trying.
    "serve --example": "`foretell demo --open`",
    "serve --home": "FORETELL_HOME",
    "demo --folder": "--out FOLDER",
    "demo --home": "FORETELL_HOME",
    "demo --days": "`foretell demo` alone: its arena has 30 days",
    "practice --home": "FORETELL_HOME",
    # Data.
    "data list --folder": "FORETELL_HOME",
    "data pull --folder": "FORETELL_HOME",
    "data pull --latest": "no option: the newest round is the default",
    "data pull --url": "FORETELL_FORECASTBENCH_URL",
    "data build --folder": "--out FOLDER",
    "data build --data": "FORETELL_HOME",
    "data build --per-source": "--set per_source=N",
    "data build --markets": "--set markets=N",
    "data build --seed": "--set seed=N",
    "data build --split": "--set split=test",
    "data build --kind": "--set task=higher-lower",
    "data build --series": "--set series=ID",
    "data build --horizon": "--set horizon=DAYS",
    "data build --history": "--set history=N",
    # Data, arenas, settings files.
    "arena run --rehearse": "--sandbox",
    "arena run --poll-interval": "no option: what is due is checked every 20 seconds",
    "arena score --draws": "--bootstrap draws=N",
    "arena score --seed": "--bootstrap seed=N",
    "arena show --arena": "foretell arena show ARENA EVENT",
    "init --name": "--set name=NAME",
    "init --tournament": "--set tournament=NAME",
    "init --organization": "--set organization=TEAM",
    "init --bucket": "--set bucket=gs://BUCKET/FOLDER",
    "init --model": "--set model=PROVIDER:NAME",
    "init --search": "--set search=ENGINE",
    "init --tournament-budget": "--set tournament_budget=DOLLARS",
    "init --interval": "--set interval=MINUTES",
    "init --trials": "--set trials=N",
    "init --install": "--set install=ADDRESS",
    "ledger --question": "foretell ledger --json",
    "ledger --head": "--verify NUMBER:HASH",
    # Scores and calibration.
    **{
        f"{command} {option}": f"--bootstrap {option.removeprefix('--')}=…"
        for command in ("score", "compare")
        for option in ("--draws", "--seed", "--level", "--interval", "--cluster")
    },
    **{f"{command} --run": "the name of the run by itself" for command in ("score", "compare")},
    **{
        f"{command} --matters": "the smallest difference that matters of each metric (Python: matters=…)"
        for command in ("score", "compare")
    },
    **{
        f"{command} --drop-unknown": "no option: forecasts of unknown targets are left out, and a note counts them"
        for command in ("score", "compare", "calibrate fit", "calibrate apply")
    },
    "score --anchors": "no option: the baselines are always shown",
    "score --no-anchors": "foretell.score(…, baselines=False) in Python",
    "score --title": "no option: a page is named after its forecasts",
    "score --costs": "a column dollars of the forecasts",
    "compare --combine": "foretell score --combine",
    "compare --weights": "foretell score --weights, or a column weight of the outcomes",
    "compare --gamma": "foretell score --gamma",
    "compare --fee": "foretell score --fee",
    "calibrate apply --check": "--allow-overlap",
    "calibrate apply --name": "no option: the result is named after its forecaster",
    # Trees.
    "--deep-model": "--set options.deep_model=MODEL",
    "--leaf-seconds": "--set options.leaf_seconds=SECONDS",
    "--kernels": "--set options.kernels=NUMBER",
    "--unsandboxed": "--set options.unsandboxed=true",
    "tree grow --rounds": "--set options.rounds=NUMBER",
    "tree grow --nodes": "--set options.nodes=NUMBER",
    "tree grow --max-leaves": "--set options.max_leaves=NUMBER",
    "tree grow --depth": "--set options.depth=NUMBER",
    "tree grow --steps": "--set options.steps=NUMBER",
    "tree grow --concurrency": "--set options.concurrency=NUMBER",
    "tree grow --retries": "--set options.retries=NUMBER",
    "tree grow --correlations": "--set options.correlations=true",
    "tree grow --bayes-net": "--set options.bayes_net=true",
    "tree grow --scaling": "--set options.scaling=NAME",
    "tree grow --intercept-limit": "--set options.intercept_limit=NUMBER",
    "tree grow --clamp": "--set options.clamp=[LOW,HIGH]",
    "tree grow --no-shortcut": "--set options.shortcut=false",
    "tree show --paths": "--inputs",
    "tree show --systematic-error": "--bias-sd SD",
    "tree edit --unpin": "--set ID=auto",
    "tree edit --claim": "--text ID=TEXT",
    "tree edit --formula": "--rule ID=FORMULA",
    "tree edit --weights": "--rule ID=SUM",
    "tree edit --report": "--edits FILE",
    "tree edit --move": "--edits FILE",
    "tree edit --stale": "--edits FILE",
    "tree edit --why": "--message TEXT",
    "tree edit --who": "author in Python",
    "tree edit --base-version": "base_version in Python",
    "tree edit --rejudge": "foretell tree update TREE --no-research afterwards",
    "tree edit --model": "foretell tree update TREE --no-research afterwards",
    "tree edit --budget": "foretell tree update TREE --no-research afterwards",
    "tree edit --save-as": "a copy of the file",
    "tree update --allocate": "--adaptive DOLLARS",
    "tree update --keep-trials": "--adaptive DOLLARS, which adds to earlier trials",
    "tree update --leaves": "--set options.leaves=NUMBER",
    "tree update --rounds": "--set options.rounds=NUMBER",
    "tree update --why": "--message TEXT",
    "tree update --who": "author in Python",
    "tree whatif --unpin": "--set ID=auto",
    "tree whatif --all": "--scenario all",
}
"""Old option, such as "--temperature" or "ask --number" → what to type instead."""


def moved_command(words: str) -> str | None:
    """Return the message for an old command, or None.

    >>> COMMANDS["tree check"] = "tree show TREE"
    >>> moved_command("tree check")
    '`foretell tree check` is now `foretell tree show TREE`.'
    >>> del COMMANDS["tree check"]
    """
    new = COMMANDS.get(words)
    return None if new is None else f"`foretell {words}` is now `foretell {new}`."


def moved_option(words: str, option: str) -> str | None:
    """Return the message for an old option of a command, or None."""
    new = OPTIONS.get(f"{words} {option}", OPTIONS.get(option))
    return None if new is None else f"{option} is no longer an option here; use {new}"
