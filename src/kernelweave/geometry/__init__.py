"""Geometries: the convex sets, some with a penalty, that kernel weights are learnt in.

One file per set. `base` holds what they share: `Geometry`, the abilities only some have, and the
Fenchel-Young gap, a geometry's share of every certificate. Behind them, `_qp` minimises the quadratic models
of Newton's method, `_projections` has the closed forms on the simplex, and `_roots` solves equations in one
unknown.
"""

from kernelweave.geometry.base import (
    FEASIBILITY_SLACK,
    Geometry,
    Polyhedral,
    ReducedDirection,
    SupportsWorkingSet,
    fenchel_young_gap,
)
from kernelweave.geometry.box_simplex import BoxSimplex
from kernelweave.geometry.elastic_net_ball import ElasticNetBall
from kernelweave.geometry.group_box import GroupBox
from kernelweave.geometry.lp_ball import LpBall
from kernelweave.geometry.point import Point
from kernelweave.geometry.power_simplex import PowerSimplex
from kernelweave.geometry.ridge_simplex import RidgeSimplex
from kernelweave.geometry.simplex import Simplex
from kernelweave.geometry.uniform import Uniform

__all__ = [
    "FEASIBILITY_SLACK",
    "BoxSimplex",
    "ElasticNetBall",
    "Geometry",
    "GroupBox",
    "LpBall",
    "Point",
    "Polyhedral",
    "PowerSimplex",
    "ReducedDirection",
    "RidgeSimplex",
    "Simplex",
    "SupportsWorkingSet",
    "Uniform",
    "fenchel_young_gap",
]
