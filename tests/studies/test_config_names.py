"""Parsing of the names of published configurations."""

import pytest
from benchmarks.blf_study import config_families, parse_configs

NAMES = (
    "kimi-k2.5-high-brave-c1-t1",
    "kimi-k2.5-high-brave-c1-t1-nobelief",
    "pro-default-brave-c0-t1",
    "pro-high-brave-c0-t0",
    "pro-high-brave-c0-t1",
    "pro-high-brave-c0-t1-batch5",
    "pro-high-brave-c0-t1-nobelief",
    "pro-high-brave-c1-p1-t1",
    "pro-high-brave-c1-p1-t1-nobelief",
    "pro-high-brave-c1-t1",
    "pro-high-none-c0-t0",
    "pro-high-none-c1-p1-t0",
)


@pytest.mark.parametrize("name", NAMES)
def test_every_part_of_a_name_is_read(name: str):
    config = parse_configs([name])[name]
    rebuilt = (
        f"{config.model}-{config.effort}-{config.search}-c{config.crowd:d}{'-p1' * config.prior}-t{config.tools:d}"
    )
    assert rebuilt + (f"-{config.variant}" if config.variant else "") == name


@pytest.mark.parametrize("name", ["my-bot", "pro-high-brave", "gpt", ""])
def test_other_names_are_left_alone(name: str):
    assert parse_configs([name]) == {}


def test_families_prefer_the_configuration_that_shows_base_rates():
    families = {family.name: family for family in config_families(parse_configs(NAMES))}
    assert list(families) == ["kimi-k2.5 c=1", "pro c=0", "pro c=1"]
    assert families["pro c=1"].belief == "pro-high-brave-c1-p1-t1"
    assert families["pro c=1"].zero_shot == "pro-high-none-c1-p1-t0"
    assert families["pro c=0"].no_belief == "pro-high-brave-c0-t1-nobelief"
    assert families["kimi-k2.5 c=1"].zero_shot is None
