"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.studies.trees.inputs import ForecastCost as ForecastCost
from foretell.studies.trees.inputs import read_cost_table as read_cost_table
from foretell.studies.trees.inputs import read_trees as read_trees
from foretell.studies.trees.noise import DISTURBANCES as DISTURBANCES
from foretell.studies.trees.noise import DRAWS as DRAWS
from foretell.studies.trees.noise import NoiseEffects as NoiseEffects
from foretell.studies.trees.noise import RATIOS as RATIOS
from foretell.studies.trees.noise import add_uniform_noise as add_uniform_noise
from foretell.studies.trees.noise import noise_effects as noise_effects
from foretell.studies.trees.noise import replace_by_chance as replace_by_chance
from foretell.studies.trees.noise import reverse_by_chance as reverse_by_chance
from foretell.studies.trees.noise import rms_shift as rms_shift
from foretell.studies.trees.noise import variance_lost as variance_lost
from foretell.studies.trees.noise import variance_lost_among as variance_lost_among
from foretell.studies.trees.world import LINK_KINDS as LINK_KINDS
from foretell.studies.trees.world import LinkKind as LinkKind
from foretell.studies.trees.world import RULES as RULES
from foretell.studies.trees.world import Simulation as Simulation
from foretell.studies.trees.world import TreeWorld as TreeWorld
from foretell.studies.trees.world import TreeWorldSettings as TreeWorldSettings
from foretell.studies.trees.world import draw_outcomes as draw_outcomes
from foretell.studies.trees.world import draw_questions as draw_questions
from foretell.studies.trees.world import draw_shape as draw_shape
from foretell.studies.trees.world import draw_world as draw_world
