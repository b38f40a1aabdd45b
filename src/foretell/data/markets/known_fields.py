"""Names of the fields that platforms' catalogues are known to have, by which a change of theirs is noticed."""


def _field_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_QUOTES = _field_names("yes_bid yes_ask no_bid no_ask last_price previous_yes_bid previous_yes_ask previous_price")
_COUNTS = _field_names("volume volume_24h open_interest yes_bid_size yes_ask_size no_bid_size no_ask_size")
_VALUES = _field_names("liquidity notional_value settlement_value")

KALSHI_EVENT = _field_names("""
    event_ticker series_ticker sub_title title collateral_return_type mutually_exclusive category strike_date
    strike_period markets available_on_brokers product_metadata settlement_sources milestones last_updated_ts
    fee_type_override fee_multiplier_override volume volume_fp exchange_index
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
    slug title category criteria mutually_exclusive close_at outcomes crowd context window window_closes_at state
    resolved_at
""")
ARENA_WEEKLY_EVENT = _field_names("event ticker title category source close_at window outcomes mutually_exclusive")
ARENA_WINDOW = _field_names("""
    event title category criteria round closes_at event_close_at outcomes crowd mutually_exclusive
""")
