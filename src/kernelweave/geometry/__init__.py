"""Geometries: the convex sets, some with a penalty, that kernel weights are learnt in."""

from kernelweave.geometry._base import FEASIBILITY_SLACK, Geometry
from kernelweave.geometry.box_simplex import BoxSimplex
from kernelweave.geometry.elastic_net_ball import ElasticNetBall
from kernelweave.geometry.fenchel import fenchel_young_gap
from kernelweave.geometry.group_box import GroupBox
from kernelweave.geometry.lp_ball import LpBall
from kernelweave.geometry.point import Point
from kernelweave.geometry.power_simplex import PowerSimplex
from kernelweave.geometry.protocol import (
    Models,
    Polyhedral,
    Projects,
    Reduces,
    Restricts,
    Reweights,
    Scales,
    WeightGeometry,
)
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
    "Models",
    "Point",
    "Polyhedral",
    "PowerSimplex",
    "Projects",
    "Reduces",
    "Restricts",
    "Reweights",
    "RidgeSimplex",
    "Scales",
    "Simplex",
    "Uniform",
    "WeightGeometry",
    "fenchel_young_gap",
]
