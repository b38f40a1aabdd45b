"""Walking through a platform's list page by page: one event that cannot be read is skipped, a wrong page is not."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Protocol

from foretell.data.http import SourceError
from foretell.data.markets.listing import EventListing, ListedEvent, ListingFilter, ListingReport, SkippedEntry
from foretell.data.payload import MalformedPayload, Payload
from foretell.questions.as_of import instant


class UnsupportedEvent(Exception):
    """An event of a sort that cannot be asked as yes-or-no targets."""


@dataclass(frozen=True, kw_only=True)
class CataloguePage:
    """Entries as sent, and the way to the next page."""

    rows: list[Payload]
    following: str | None = None
    """None at the end."""


class MarketCatalogue(Protocol):
    """What differs between platforms."""

    @property
    def platform(self) -> str:
        """Its name."""
        ...

    @property
    def key(self) -> str:
        """The field that identifies an entry."""
        ...

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """The page a cursor leads to; an empty cursor is the first."""
        ...

    async def parsed(self, row: Payload, wanted: ListingFilter, ledger: ListingReport) -> ListedEvent | None:
        """The entry as an event; None where it was left out before all of it was read. May raise `UnsupportedEvent`."""
        ...


def list_events(catalogue: MarketCatalogue, wanted: ListingFilter) -> EventListing:
    """The events of a catalogue that fit the wish."""
    ledger = ListingReport()
    return EventListing(_walk(catalogue, wanted, ledger), ledger)


async def _walk(
    catalogue: MarketCatalogue, wanted: ListingFilter, ledger: ListingReport
) -> AsyncGenerator[ListedEvent]:
    cursor, met, left = "", set[str](), wanted.limit
    while ledger.pages < wanted.pages:
        with error_context(f"{catalogue.platform} list"):
            page = await catalogue.page(wanted, cursor)
        ledger.pages += 1
        async for event in _readable(catalogue, page, wanted, ledger):
            if event.question.id in met:
                # Lists that shift while they are read show an entry twice.
                continue
            met.add(event.question.id)
            yield event
            left -= 1
            if left == 0:
                return
        if page.following is None:
            ledger.complete = True
            return
        if f"cursor {page.following}" in met:
            raise MalformedPayload(
                f"{catalogue.platform} list: the cursor leads back to a page already read", url=_url(page)
            )
        met.add(f"cursor {page.following}")
        cursor = page.following


async def _readable(
    catalogue: MarketCatalogue, page: CataloguePage, wanted: ListingFilter, ledger: ListingReport
) -> AsyncIterator[ListedEvent]:
    """Wanted events of a page. If not a single entry can be read, the platform has changed and that is an error."""
    broken: list[SkippedEntry] = []
    for row in page.rows:
        name = entry_id(row, catalogue.key)
        try:
            with error_context(f"{catalogue.platform} event {name}", row.url):
                event = await catalogue.parsed(row, wanted, ledger)
        except MalformedPayload as error:
            broken.append(SkippedEntry(platform=catalogue.platform, id=name, reason=error.problem))
            ledger.skipped.append(broken[-1])
        except UnsupportedEvent as error:
            told = SkippedEntry(platform=catalogue.platform, id=name, reason=str(error), kind="unsupported")
            ledger.skipped.append(told)
        except SourceError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            gone = SkippedEntry(platform=catalogue.platform, id=name, reason=error.problem, kind="unknown")
            ledger.skipped.append(gone)
        else:
            if event is None:
                continue
            if reason := wanted.refusal(event):
                ledger.left_out[reason] += 1
            else:
                yield event
    if len(broken) == len(page.rows) > 1:
        raise MalformedPayload(f"none of {len(broken)} entries could be read; {broken[0].reason}", url=_url(page))


def entry_id(row: Payload, key: str) -> str:
    """The id of an entry for reports, even where the entry is broken."""
    value = row.value.get(key) if isinstance(row.value, dict) else None
    return str(value) if isinstance(value, str | int) else f"at {row.path or 'the top'}"


@contextmanager
def error_context(what: str, url: str = "") -> Generator[None]:
    """Says in every complaint what it is about; a value our own types refuse is a complaint like the others."""
    try:
        yield
    except MalformedPayload as error:
        raise MalformedPayload(f"{what}: {error.problem}", url=error.url) from None
    except ValueError as error:
        raise MalformedPayload(f"{what}: {error}", url=url) from None
    except SourceError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        raise SourceError(f"{what} is not there", url=error.url, status=error.status) from None


def _url(page: CataloguePage) -> str:
    return page.rows[0].url if page.rows else ""


# Shapes of field that the catalogues of markets share.


def iso(field: Payload) -> datetime:
    """A moment written out, with a time zone."""
    try:
        return instant(field.text())
    except ValueError:
        pass
    field.wrong("a time")


def moment(row: Payload, name: str) -> datetime | None:
    """A moment written out in a field that may be missing, null or empty."""
    found = row.get(name)
    return None if found is None or found.value == "" else iso(found)


def flag(field: Payload) -> bool:
    """True or false."""
    return field.value if isinstance(field.value, bool) else field.wrong("true or false")


def is_set(row: Payload, name: str) -> bool:
    """A flag that is off where it is missing."""
    found = row.get(name)
    return found is not None and flag(found)


def text(row: Payload, name: str) -> str:
    """A text that must be there; an explicit null is an empty one."""
    found = row.present(name)
    return "" if found is None else found.text().strip()


def words(row: Payload, name: str) -> str:
    """A text, empty where it is missing."""
    found = row.get(name)
    return "" if found is None else found.text().strip()


def amount(row: Payload, *names: str) -> float | None:
    """The number in the first of these fields that holds one. What cannot be negative and is, was not told."""
    found = next((told for name in names if (told := row.get(name)) is not None), None)
    number = None if found is None else found.number()
    return None if number is None or number < 0 else number


def total(amounts: Iterable[float | None]) -> float | None:
    """The sum of what was told; None where nothing was."""
    told = [one for one in amounts if one is not None]
    return sum(told) if told else None


# Names of the fields that platforms' catalogues are known to have, by which a change of theirs is noticed.


def _field_names(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_QUOTES = _field_names("yes_bid yes_ask no_bid no_ask last_price previous_yes_bid previous_yes_ask previous_price")
_COUNTS = _field_names("volume volume_24h open_interest yes_bid_size yes_ask_size no_bid_size no_ask_size")
_VALUES = _field_names("liquidity notional_value settlement_value")

KALSHI_EVENT = _field_names("""
    event_ticker series_ticker sub_title title collateral_return_type mutually_exclusive category strike_date
    strike_period markets available_on_brokers product_metadata settlement_sources milestones last_updated_ts
    fee_type_override fee_multiplier_override volume volume_fp
""")
KALSHI_MARKET = (
    _field_names("""
    ticker event_ticker market_type title subtitle yes_sub_title no_sub_title status result category created_time
    updated_time open_time close_time expected_expiration_time expiration_time latest_expiration_time
    settlement_timer_seconds settlement_ts occurrence_datetime can_close_early early_close_condition expiration_value
    strike_type floor_strike cap_strike functional_strike custom_strike rules_primary rules_secondary is_provisional
    mve_collection_ticker mve_selected_legs primary_participant_key price_level_structure price_ranges
    response_price_units tick_size risk_limit_cents fractional_trading_enabled exchange_index fee_waiver_expiration_time
    """)
    | _QUOTES
    | _COUNTS
    | _VALUES
    | {f"{name}_dollars" for name in _QUOTES | _VALUES}
    | {f"{name}_fp" for name in _COUNTS}
)

_POLYMARKET = _field_names("""
    id slug title subtitle description resolutionSource startDate endDate image icon active closed archived new featured
    restricted liquidity volume category subcategory createdBy updatedBy createdAt updatedAt commentsEnabled competitive
    volume24hr volume1wk volume1mo volume1yr enableOrderBook liquidityAmm liquidityClob negRisk negRiskMarketID
    negRiskFeeBips negRiskAugmented commentCount imageOptimized iconOptimized featuredImage featuredImageOptimized
    disqusThread markets series categories collections tags closedTime showAllOutcomes showMarketImages
    automaticallyResolved automaticallyActive pendingDeployment deploying deployingTimestamp
    scheduledDeploymentTimestamp requiresTranslation score gameId isTemplate templateVariables published_at publishedAt
    twitterCardImage cyom resolutionStatus
""")
POLYMARKET_EVENT = _POLYMARKET | _field_names("""
    ticker creationDate openInterest sortBy parentEvent parentEventId sportsradarMatchId turnProviderId subEvents
    enableNegRisk eventDate startTime eventWeek seriesSlug elapsed period live ended finishedTimestamp gmpChartMode
    eventCreators tweetCount chats featuredOrder estimateValue cantEstimate estimatedValue templates spreadsMainLine
    totalsMainLine carouselMap gameStatus electionType countryName color cumulativeMarkets eventMetadata teams sport
    bestLines externalPartners internalUsers homeTeamName awayTeamName
""")
POLYMARKET_MARKET = _POLYMARKET | _field_names("""
    question conditionId questionID events outcomes outcomePrices clobTokenIds shortOutcomes marketType formatType
    ammType sponsorName sponsorImage xAxisValue yAxisValue denominationToken fee fees lowerBound upperBound
    lowerBoundDate upperBoundDate marketMakerAddress wideFormat mailchimpTag resolvedBy marketGroup groupItemTitle
    groupItemThreshold groupItemRange umaEndDate umaEndDateIso umaResolutionStatus umaResolutionStatuses umaBond
    umaReward customLiveness curationOrder orderPriceMinTickSize orderMinSize volumeNum liquidityNum endDateIso
    startDateIso hasReviewedDates readyForCron gameStartTime eventStartTime secondsDelay teamAID teamBID fpmmLive
    volumeAmm volumeClob volume24hrAmm volume1wkAmm volume1moAmm volume1yrAmm volume24hrClob volume1wkClob volume1moClob
    volume1yrClob makerBaseFee takerBaseFee feesEnabled feeType feeSchedule acceptingOrders acceptingOrdersTimestamp
    notificationsEnabled creator ready funded pastSlugs readyTimestamp fundedTimestamp rewardsMinSize rewardsMaxSpread
    clobRewards spread oneHourPriceChange oneDayPriceChange oneWeekPriceChange oneMonthPriceChange oneYearPriceChange
    lastTradePrice bestBid bestAsk clearBookOnStart chartColor seriesColor showGmpSeries showGmpOutcome
    manualActivation negRiskOther negRiskRequestID submitted_by approved rfqEnabled holdingRewardsEnabled
    sportsMarketType line cryptoMarketConfig sentDiscord pagerDutyNotificationEnabled
""")

MANIFOLD_MARKET = _field_names("""
    id creatorId creatorUsername creatorName creatorAvatarUrl createdTime closeTime question url slug outcomeType
    mechanism probability pool p totalLiquidity volume volume24Hours isResolved resolution resolutions resolutionTime
    resolutionProbability resolverId uniqueBettorCount lastBetTime lastUpdatedTime lastCommentTime token value min max
    isLogScale answers shouldAnswersSumToOne addAnswersMode options description textDescription coverImageUrl groupSlugs
    marketTier siblingContractId totalBounty bountyLeft isLove loverUserId1 loverUserId2 matchCreatorId visibility
    sportsStartTimestamp sportsEventId sportsLeague unit midpoints
""")
MANIFOLD_ANSWER = _field_names("""
    id index contractId userId text shortText createdTime color pool probability isOther resolution resolutionTime
    resolutionProbability resolverId probChanges totalLiquidity subsidyPool volume imageUrl midpoint prob
""")

METACULUS_POST = _field_names("""
    id title short_title url_title slug author_id author_username coauthors created_at published_at edited_at
    curation_status curation_status_updated_at comment_count status resolved actual_close_time scheduled_close_time
    scheduled_resolve_time actual_resolve_time open_time nr_forecasters projects question group_of_questions conditional
    notebook user_permission vote forecasts_count subscriptions unread_comment_count last_viewed_at key_factors
    is_current_content_translated html_metadata_json description_preview similar_posts private_note
""")
METACULUS_QUESTION = _field_names("""
    id title short_title description resolution_criteria fine_print type options options_history all_options_ever status
    open_time cp_reveal_time spot_scoring_time scheduled_close_time actual_close_time scheduled_resolve_time
    actual_resolve_time resolution_set_time resolution open_lower_bound open_upper_bound inbound_outcome_count unit
    scaling aggregations my_forecasts question_weight include_bots_in_aggregates default_score_type
    default_aggregation_method created_at group_variable possibilities label group_rank post_id average_coverage
""")

ARENA_EVENT = _field_names("""
    id slug title category criteria rules description mutually_exclusive close_at closes_at open_at status outcomes
    windows tags created_at updated_at resolved_at source source_url url ticker event_ticker series volume liquidity
""")
