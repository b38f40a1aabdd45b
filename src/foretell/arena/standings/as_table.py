"""Standings as the long table that everything else here compares by."""

import numpy as np

from foretell.arena.standings.standings import Standings
from foretell.arena.table import Labels, Table, Targets


def as_table(standings: Standings) -> Table:
    """Every scored market of every moment is a target; an event counts once, however often and widely it was asked."""
    scored = standings.scored()
    event, moment = scored.market_event, scored.markets.moment
    moments = np.bincount(scored.moments.event, minlength=len(scored.events))
    markets = np.bincount(moment, minlength=len(scored.moments))
    names, codes = np.unique(np.asarray(scored.markets.target, dtype=object).astype(str), return_inverse=True)
    entry, target = np.nonzero(np.isfinite(scored.p))
    return Table(
        targets=Targets(
            outcome=scored.markets.outcome,
            weight=1.0 / (moments[event] * markets[moment]),
            question=Labels(codes=event, names=scored.events.ids),
            target=Labels(codes=codes, names=tuple(str(name) for name in names)),
            price=scored.markets.price,
            yes_ask=scored.markets.yes_ask,
            no_ask=scored.markets.no_ask,
            groups={
                "category": scored.events.category.take(event),
                "platform": scored.events.platform.take(event),
                "cluster": Labels(
                    codes=scored.events.cluster[event],
                    names=tuple(map(str, range(int(scored.events.cluster.max(initial=0)) + 1))),
                ),
            },
        ),
        forecasters=scored.names,
        forecaster=entry,
        target=target,
        p=scored.p[entry, target],
    )
