"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.studies.audit.auditor import AuditCase as AuditCase
from foretell.studies.audit.auditor import AuditedText as AuditedText
from foretell.studies.audit.auditor import Auditor as Auditor
from foretell.studies.audit.auditor import clustered_rate as clustered_rate
from foretell.studies.audit.auditor import fence_matrix as fence_matrix
from foretell.studies.audit.leakage import READ_INSTRUCTION as READ_INSTRUCTION
from foretell.studies.audit.leakage import SUPPORT_INSTRUCTION as SUPPORT_INSTRUCTION
from foretell.studies.audit.leakage import agent_notes as agent_notes
from foretell.studies.audit.leakage import audit_memory as audit_memory
from foretell.studies.audit.leakage import past_tense_after_cutoff as past_tense_after_cutoff
from foretell.studies.audit.leakage import training_cutoff_notes as training_cutoff_notes
from foretell.studies.audit.passages import AuditPassage as AuditPassage
from foretell.studies.audit.passages import AuditScope as AuditScope
from foretell.studies.audit.passages import MATERIAL_INSTRUCTION as MATERIAL_INSTRUCTION
from foretell.studies.audit.passages import MaterialOrigin as MaterialOrigin
from foretell.studies.audit.passages import ShownMaterial as ShownMaterial
from foretell.studies.audit.passages import TextLocation as TextLocation
from foretell.studies.audit.passages import TrialTrace as TrialTrace
from foretell.studies.audit.passages import audit_material as audit_material
from foretell.studies.audit.passages import collect_passages as collect_passages
from foretell.studies.audit.passages import draw_sample as draw_sample
