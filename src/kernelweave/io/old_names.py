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
    "bank.base": "bank.spec",
    "bank.blocks": "bank.layout",
    "bank.centred": "bank.scaled",
    "bank.columns": "views.tables",
    "bank.compiled_rows": "multiclass.rows",
    "bank.entry": "bank.spec",
    "bank.gap_fits": "bank.missing_views",
    "bank.gaps": "bank.missing_views",
    "bank.kernel_bank": "bank.builders",
    "bank.made_rows": "multiclass.rows",
    "bank.naming": "bank.spec",
    "bank.rescaled": "bank.scaled",
    "bank.rules": "bank.builders",
    "bank.spread": "views.views",
    "bank.tables": "views.tables",
    "bank.views": "views.views",
    "estimators.aligned": "baselines.target_alignment",
    "estimators.bag_baselines": "weak_labels.bag_baselines",
    "estimators.batches": "multiclass.partitions",
    "estimators.clusterer": "weak_labels.clusterer",
    "estimators.easy_mkl": "baselines.easy_mkl",
    "estimators.heuristics": "baselines.heuristics",
    "estimators.localized": "adaptive.localized",
    "estimators.lp_beta": "baselines.lp_beta",
    "estimators.metric": "metric",
    "estimators.metric.itml": "metric.itml",
    "estimators.metric.itml_plus": "metric.itml_plus",
    "estimators.metric.mahalanobis": "metric.mahalanobis",
    "estimators.metric.select": "metric.itml_select",
    "estimators.metric.supervised": "metric.supervised",
    "estimators.multi_instance": "weak_labels.multi_instance",
    "estimators.obscure": "multiclass.obscure",
    "estimators.partitioned": "multiclass.partitions",
    "estimators.privileged": "privileged.svm_plus",
    "estimators.regressor_search": "estimators.search",
    "estimators.resuming": "multiclass.checkpoint",
    "estimators.sample_adaptive": "adaptive.sample_adaptive",
    "estimators.semi_supervised": "weak_labels.semi_supervised",
    "estimators.stream": "multiclass.stream",
    "estimators.svm_2k": "privileged.svm_2k",
    "estimators.svm_plus": "privileged.svm_plus",
    "gram.rows": "multiclass.rows",
    "learners.discriminant": "learners.fisher",
    "learners.machine": "learners.solution",
    "methods.gating": "adaptive.gating",
    "methods.interior_point": "geometry.interior_point",
    "methods.parallel_sum": "privileged.interior",
    "methods.sample_adaptive": "adaptive.switches",
    "methods.svm_2k": "privileged.svm_2k_problem",
    "methods.svm_plus": "privileged",
    "methods.svm_plus.interior": "privileged.svm_plus_solver",
    "methods.svm_plus.learner": "privileged.svm_plus_solver",
    "methods.svm_plus.machine": "privileged.svm_plus_problem",
    "methods.svm_plus.pairs": "privileged.svm_plus_solver",
    "methods.svm_plus.spaces": "privileged.two_spaces",
    "methods.svm_plus.weights": "privileged.two_spaces",
    "solvers.pnorm": "multiclass",
    "solvers.pnorm.base": "multiclass.problem",
    "solvers.pnorm.certificate": "multiclass.problem",
    "solvers.pnorm.checkpoint": "multiclass.checkpoint",
    "solvers.pnorm.dual_ascent": "multiclass.dual_ascent",
    "solvers.pnorm.iterate": "multiclass.stochastic",
    "solvers.pnorm.mixture": "multiclass.partitioned_ascent",
    "solvers.pnorm.online": "multiclass.stream",
    "solvers.pnorm.online_batch": "multiclass.stochastic",
    "solvers.pnorm.partitioned": "multiclass.partitioned_ascent",
    "solvers.pnorm.pegasos": "multiclass.stochastic",
    "solvers.pnorm.problem": "multiclass.problem",
    "solvers.pnorm.result": "multiclass.problem",
    "solvers.pnorm.segments": "multiclass.rows",
    "solvers.pnorm.stochastic": "multiclass.stochastic",
    "solvers.result": "solvers.problem",
}
CLASSES = {
    "bank.builders.DistancesBank": "bank.rule_banks.DistancesBank",
    "bank.builders.PerFeatureBank": "bank.rule_banks.PerFeatureBank",
    "bank.builders.PerViewBank": "bank.rule_banks.PerViewBank",
    "bank.rules.DistancesBank": "bank.rule_banks.DistancesBank",
    "bank.rules.PerFeatureBank": "bank.rule_banks.PerFeatureBank",
    "bank.rules.PerViewBank": "bank.rule_banks.PerViewBank",
    "bank.features.NystroemFeatures": "bank.features.LandmarkFeatures",
    "bank.centred.CentredKernels": "bank.scaled.RescaledKernels",
    "bank.gaps.GappedKernels": "bank.missing_views.KernelsWithMissingViews",
    "bank.gaps.Group": "bank.missing_views.ViewGroup",
    "estimators.metric.mahalanobis.Metric": "metric.mahalanobis.MahalanobisDistance",
    "estimators.obscure.Bounds": "multiclass.obscure.OptimumBounds",
    "methods.ambiguity.rounds.Round": "weak_labels.cutting_plane.CuttingPlaneRound",
    "methods.sample_adaptive.Round": "adaptive.switches.SwitchingRound",
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
