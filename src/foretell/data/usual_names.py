"""The usual names of the columns of tables, which other people's files are recognised by."""

import re
from collections.abc import Iterable, Mapping, Sequence

USUAL_NAMES: Mapping[str, tuple[str, ...]] = {
    "forecaster": (
        "forecaster forecaster_name forecaster_username model model_name model_id system bot bot_name method team "
        "agent llm predictor",
        "user username user_name participant author",
    ),
    "question": (
        "question question_id qid market_id event_id claim_id",
        "id",
        "event market claim slug ticker",
        "question_text question_title title",
    ),
    "target": ("target target_id option option_id option_name choice outcome_name",),
    "p": (
        "p prob probability p_yes prob_yes probability_yes yes_prob yes_probability predicted_probability "
        "predicted_prob pred_prob forecast_probability prediction predicted forecast",
    ),
    "outcome": (
        "outcome resolution resolved answer resolved_to resolved_value resolution_value result truth ground_truth "
        "actual actual_outcome final_outcome correct_answer",
        "y y_true label",
    ),
    "due": (
        "due forecast_date forecast_due_date forecast_time forecasted_at forecasted_on asked asked_on asked_at as_of "
        "prediction_date predicted_on predicted_at",
    ),
    "resolved_on": (
        "resolved_on resolution_date resolved_at resolved_date resolve_date date_resolved resolution_time settled_at "
        "settled_on settlement_date",
        "close_date close_time closed_at closed_on closes end_date",
    ),
    "price": (
        "price market_price market_prob market_probability market_p crowd crowd_price crowd_probability crowd_prob "
        "community_prediction community_probability",
    ),
    "trial": ("trial trial_id epoch attempt repetition replicate",),
    "source": ("source",),
    "category": ("category",),
    "cluster": ("cluster",),
    "horizon": ("horizon",),
    "weight": ("weight",),
}
"""Role → its usual names, in groups: a name counts only if the table has none of an earlier group."""
QUESTION_NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("question_id qid market_id event_id claim_id market_ticker ticker", "id", "event market claim slug"),
    "text": ("question_text question_title", "question title market_title", "claim event market"),
    "due": (*USUAL_NAMES["due"], "present_date checkpoint_time checkpoint_date checkpoint_at snapshot_time timestamp"),
    "outcome": USUAL_NAMES["outcome"],
    "price": (*USUAL_NAMES["price"], "yes_price last_price"),
    "resolved_on": USUAL_NAMES["resolved_on"],
    "criteria": ("resolution_criteria criteria rules rules_primary resolution_rules", "description"),
    "background": ("background context",),
    "category": USUAL_NAMES["category"],
    "cluster": ("cluster series_ticker event_ticker",),
}
"""Role in a table of questions → its usual names, in groups as above."""

DOCUMENT_NAMES: Mapping[str, tuple[str, ...]] = {
    "url": ("url address link", "article_url page_url"),
    "title": ("title", "headline article_title page_title"),
    "text": ("text", "content page_text maintext article_maintext body markdown"),
    "published": ("published", "published_at date_published date_publish publish_date article_publish_date"),
    "captured": ("captured", "captured_at date_scraped scraped_at crawled_at fetched_at"),
}
"""Role in a table of documents → its usual names, in groups as above."""


def plain_name(column: str) -> str:
    """The name without case, blanks, underscores and other marks.

    >>> plain_name("Question ID"), plain_name("question_id"), plain_name("Модель 1")
    ('questionid', 'questionid', 'модель1')
    """
    return re.sub(r"[\W_]", "", column.casefold())


def columns_named(columns: Iterable[str], groups: Sequence[str]) -> list[str]:
    """Return the columns that have one of these names, of the first group of which there are any.

    >>> columns_named(["Question ID", "id", "text"], ("question_id qid", "id"))
    ['Question ID']
    """
    by_plain: dict[str, list[str]] = {}
    for column in columns:
        by_plain.setdefault(plain_name(column), []).append(column)
    for group in groups:
        if found := [column for name in group.split() for column in by_plain.get(plain_name(name), ())]:
            return found
    return []
