"""Language models: request and reply, router, providers, journal, budget, limits, prices."""

from foretell.interface import offer

HOMES = {
    "foretell.models.budget": "Budget BudgetedModel estimate_tokens",
    "foretell.models.canonical": "content_key pack_reply quick_json request_key unpack_reply",
    "foretell.models.check": "unknown_models",
    "foretell.models.facts": "ModelFacts facts_of forget_facts known_facts use_facts_from",
    "foretell.models.journal": (
        "DamagedReply JOURNAL_TABLES Journal JournalEntry JournalReadingModel JournalRequest JournalWritingModel "
        "entry_fault"
    ),
    "foretell.models.limits": "LimitedModel ModelLimits parse_limits",
    "foretell.models.model": (
        "AssistantMessage BudgetExceeded ContextTooLong EFFORTS FinishReason KeyRefused Message Model ModelBusy "
        "ModelError ModelRefused ModelSettings NotInJournal OutOfCredit Provider ProviderClient ProviderConfig Reply "
        "ReplyLost ReplyTooLong Request RequestInFlight ServiceTier SettingRefused SystemMessage TokenCount ToolCall "
        "ToolResult ToolSpec UserMessage"
    ),
    "foretell.models.names": (
        "MODEL_ROLES ModelName ModelRole ModelRoles check_knowledge_cutoff default_effort default_efforts is_loopback "
        "knowledge_cutoff"
    ),
    "foretell.models.prices": "FREE_OF_CHARGE PriceList TokenPrice read_price",
    "foretell.models.router": "ModelRouter open_provider",
    "foretell.models.structured_output": (
        "NoJsonFound NoUsableAnswer UnusableReply ask_typed ask_until_usable closed_object object_in read_json "
        "read_object schema_errors schema_of"
    ),
    "foretell.models.waiting": "WaitingReply WorkClock asking_for waiting_text",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
