"""Parameters as rows of a table: a decorator turns them into Params with setters and getters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pyspark.ml.param import Param, Params, TypeConverters

_Class = TypeVar("_Class", bound=type)


@dataclass(frozen=True, slots=True)
class Row:
    """One parameter. `accessor`: what stands behind set and get, where it is not the name in camel case."""

    name: str
    doc: str
    default: Any = None
    converter: Callable[[Any], Any] | None = None
    accessor: str | None = None
    has_setter: bool = True


def optional(converter: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a converter that lets None pass."""
    return lambda value: None if value is None else converter(value)


to_int = optional(TypeConverters.toInt)
to_bool = TypeConverters.toBoolean
to_string = optional(TypeConverters.toString)
to_strings = optional(TypeConverters.toListString)
to_floats = optional(TypeConverters.toListFloat)
to_list = optional(TypeConverters.toList)


def camel_case(name: str) -> str:
    """Return batch_size as BatchSize."""
    return "".join(part[:1].upper() + part[1:] for part in name.strip("_").split("_"))


def with_params(rows: Iterable[Row]) -> Callable[[_Class], _Class]:
    """Give a class the parameters of a table; `_default_params` holds the defaults of it and its bases.

    A getter that the class brings stays.
    """
    rows = tuple(rows)

    def decorate(cls: _Class) -> _Class:
        defaults = dict(getattr(cls, "_default_params", {}))
        for row in rows:
            setattr(cls, row.name, Param(Params._dummy(), row.name, row.doc, row.converter))  # noqa: SLF001
            defaults[row.name] = row.default
            accessor = row.accessor or camel_case(row.name)
            if f"get{accessor}" not in vars(cls):
                setattr(cls, f"get{accessor}", _getter(row))
            if row.has_setter:
                setattr(cls, f"set{accessor}", _setter(row))
        cls._default_params = defaults  # type: ignore[attr-defined]
        return cls

    return decorate


def _getter(row: Row) -> Callable[[Any], Any]:
    def get(self: Any) -> Any:
        return self.getOrDefault(row.name)

    get.__doc__ = f"Return {row.name}: {row.doc}."
    return get


def _setter(row: Row) -> Callable[[Any, Any], Any]:
    def set_(self: Any, value: Any) -> Any:
        return self._set(**{row.name: value}) if value is not None else self._clear_to_none(row.name)

    set_.__doc__ = f"Set {row.name}: {row.doc}."
    return set_


class TableParams(Params):
    """Params whose table is read by `with_params`; None is a value of every parameter."""

    _default_params: dict[str, Any]

    def __init__(self) -> None:
        """Begin with the defaults; lists and dictionaries are copies."""
        super().__init__()
        for name, default in self._default_params.items():
            value = type(default)(default) if isinstance(default, (list, dict)) else default
            self._defaultParamMap[getattr(self, name)] = value

    def _clear_to_none(self, name: str) -> Any:
        # Params._set leaves None out, so an earlier value would stay.
        self._paramMap[getattr(self, name)] = None
        return self
