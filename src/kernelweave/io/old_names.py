"""Where classes of earlier versions live today: model files hold full names, and have to go on loading."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any
from zipfile import ZipFile

SCHEMA = "schema.json"
# Old module: new module, all under kernelweave. A class that moved by itself has a line in CLASSES.
MODULES = {
    "bank.bags": "views.bags",
    "bank.columns": "views.columns",
    "bank.compiled_rows": "multiclass.compiled_rows",
    "bank.made_rows": "multiclass.row_blocks",
    "bank.spread": "views.spread",
    "bank.tables": "views.tables",
    "bank.views": "views.views",
    "estimators.aligned": "baselines.aligned",
    "estimators.bag_baselines": "weak_labels.bag_baselines",
    "estimators.batches": "multiclass.batches",
    "estimators.clusterer": "weak_labels.clusterer",
    "estimators.easy_mkl": "baselines.easy_mkl",
    "estimators.features": "adaptive.features",
    "estimators.heuristics": "baselines.heuristics",
    "estimators.localized": "adaptive.localized",
    "estimators.lp_beta": "baselines.lp_beta",
    "estimators.metric": "metric",
    "estimators.metric.inputs": "metric.inputs",
    "estimators.metric.itml": "metric.itml",
    "estimators.metric.itml_plus": "metric.itml_plus",
    "estimators.metric.mahalanobis": "metric.mahalanobis",
    "estimators.metric.presets": "metric.presets",
    "estimators.metric.select": "metric.select",
    "estimators.metric.setting": "metric.setting",
    "estimators.metric.supervised": "metric.supervised",
    "estimators.metric.threshold": "metric.threshold",
    "estimators.multi_instance": "weak_labels.multi_instance",
    "estimators.obscure": "multiclass.obscure",
    "estimators.partitioned": "multiclass.partitioned_fit",
    "estimators.priors": "adaptive.initial_switches",
    "estimators.privileged": "privileged.inputs",
    "estimators.resuming": "multiclass.checkpointing",
    "estimators.sample_adaptive": "adaptive.sample_adaptive",
    "estimators.semi_supervised": "weak_labels.semi_supervised",
    "estimators.stream": "multiclass.stream",
    "estimators.svm_2k": "privileged.svm_2k",
    "estimators.svm_plus": "privileged.svm_plus",
    "estimators.two_step": "baselines.two_step",
    "estimators.two_step_presets": "baselines.presets",
    "gram.local": "adaptive.local_grams",
    "gram.rows": "multiclass.rows",
    "methods": "baselines",
    "methods.gating": "adaptive.gating",
    "methods.interior_point": "privileged.interior_point",
    "methods.localized": "adaptive.gating_descent",
    "methods.logdet": "metric.logdet",
    "methods.logdet.feasibility": "metric.feasibility",
    "methods.logdet.goals": "metric.goals",
    "methods.logdet.problem": "metric.problem",
    "methods.logdet.projections": "metric.projections",
    "methods.logdet.space": "metric.space",
    "methods.mixing": "baselines.mixing",
    "methods.moments": "baselines.moments",
    "methods.parallel_sum": "privileged.parallel_sum",
    "methods.patterns": "adaptive.patterns",
    "methods.sample_adaptive": "adaptive.switch_descent",
    "methods.single_kernels": "baselines.single_kernels",
    "methods.svm_2k": "privileged.svm_2k_problem",
    "methods.svm_plus": "privileged",
    "methods.svm_plus.interior": "privileged.interior",
    "methods.svm_plus.learner": "privileged.learner",
    "methods.svm_plus.machine": "privileged.machine",
    "methods.svm_plus.pairs": "privileged.pairs",
    "methods.svm_plus.spaces": "privileged.spaces",
    "methods.svm_plus.weights": "privileged.weights",
    "methods.switches": "adaptive.switches",
    "methods.target_alignment": "baselines.target_alignment",
    "solvers.pnorm": "multiclass",
    "solvers.pnorm.base": "multiclass.base",
    "solvers.pnorm.certificate": "multiclass.certificate",
    "solvers.pnorm.checkpoint": "multiclass.checkpoint",
    "solvers.pnorm.dual_ascent": "multiclass.dual_ascent",
    "solvers.pnorm.iterate": "multiclass.iterate",
    "solvers.pnorm.mixture": "multiclass.mixture",
    "solvers.pnorm.online": "multiclass.online",
    "solvers.pnorm.online_batch": "multiclass.online_batch",
    "solvers.pnorm.partitioned": "multiclass.partitioned",
    "solvers.pnorm.pegasos": "multiclass.pegasos",
    "solvers.pnorm.problem": "multiclass.problem",
    "solvers.pnorm.result": "multiclass.result",
    "solvers.pnorm.segments": "multiclass.segments",
    "solvers.pnorm.stochastic": "multiclass.stochastic",
}
CLASSES: dict[str, str] = {
    "methods.ambiguity.rounds.Round": "weak_labels.cutting_plane.CuttingPlaneRound",
}


def with_todays_names(content: bytes) -> bytes:
    """Return a model file in which every class is called what it is called today."""
    with ZipFile(BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    before = json.loads(members[SCHEMA])
    schema = _renamed(before)
    if schema == before:
        return content
    members[SCHEMA] = json.dumps(schema).encode()
    renamed = BytesIO()
    with ZipFile(renamed, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return renamed.getvalue()


def _renamed(node: Any) -> Any:
    """Return a schema with the names of today's classes and functions."""
    if isinstance(node, list):
        return [_renamed(child) for child in node]
    if not isinstance(node, dict):
        return node
    node = {key: _renamed(child) for key, child in node.items()}
    for module, name in (("__module__", "__class__"), ("module_path", "function")):
        if isinstance(node.get(module), str) and isinstance(node.get(name), str):
            node[module], node[name] = _today(node[module], node[name])
    return node


def _today(module: str, name: str) -> tuple[str, str]:
    """Return module and name of what an earlier version called so."""
    package, _, inside = module.partition(".")
    if package != "kernelweave":
        return module, name
    if f"{inside}.{name}" in CLASSES:
        inside, _, name = CLASSES[f"{inside}.{name}"].rpartition(".")
        return f"kernelweave.{inside}", name
    return f"kernelweave.{MODULES.get(inside, inside)}", name
