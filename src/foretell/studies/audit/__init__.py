"""The leak audit: did anything from after the cutoff reach a forecast?"""

from foretell.interface import offer

HOMES = {
    "foretell.studies.audit.auditor": "AuditCase AuditedText Auditor clustered_rate fence_matrix",
    "foretell.studies.audit.leakage": (
        "READ_INSTRUCTION SUPPORT_INSTRUCTION agent_notes audit_memory past_tense_after_cutoff training_cutoff_notes"
    ),
    "foretell.studies.audit.passages": (
        "AuditPassage AuditScope MATERIAL_INSTRUCTION MaterialOrigin ShownMaterial TextLocation TrialTrace "
        "audit_material collect_passages draw_sample"
    ),
}
"""Maps each module to the names that the rest of the package imports from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
