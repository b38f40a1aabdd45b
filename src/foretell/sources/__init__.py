"""Everything off this machine that is not a model: data sets, series, markets, pages."""
