"""Parts: small dataclasses that scikit-learn can clone, inspect and tune."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, Self


class Part:
    """Base of every learner, geometry, solver, kernel and scaling.

    A part is a value: a dataclass whose fields are its parameters, with the two methods scikit-learn
    needs to clone it and to reach inside it (``model.set_params(geometry__theta=0.2)``).
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with ``deep`` also those of nested parts."""
        assert is_dataclass(self)
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        if not deep:
            return own
        nested = {
            f"{name}__{key}": inner
            for name, value in own.items()
            if hasattr(value, "get_params") and not isinstance(value, type)
            for key, inner in value.get_params().items()
        }
        return own | nested

    def set_params(self, **params: Any) -> Self:
        """Set parameters in place, ``name__inner`` reaching into nested parts."""
        legal = self.get_params(deep=False)
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in legal:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(legal) or 'none'}."
                )
            if inner:
                getattr(self, name).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self
