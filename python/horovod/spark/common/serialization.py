"""Save and load of estimators and models: JSON that Spark's Pipeline reads, and one blob, through fsspec.

`<path>/metadata/part-00000` has the form of Spark's own metadata, so that a stage is found again inside of a
Pipeline; parameters that JSON cannot hold are pickled together in `<path>/params.pkl`. No JVM takes part, so
it also works on Spark Connect. Loading runs what was pickled: load only what you trust.
"""

from __future__ import annotations

import json
import time
from importlib import import_module
from typing import Any, TypeVar

import cloudpickle  # type: ignore[import-untyped]
from pyspark.ml.util import MLReadable, MLWritable

from horovod.runner.common.util import codec

from ._filesystems import open_filesystem

_METADATA = "metadata/part-00000"
_BLOB = "params.pkl"
_JSON_TYPES = (str, int, float, bool, type(None))
_Readable = TypeVar("_Readable", bound="HorovodParamsReadable")


def is_json(value: Any) -> bool:
    """Whether JSON holds the value without changing it."""
    if isinstance(value, list):
        return all(is_json(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_json(item) for key, item in value.items())
    return isinstance(value, _JSON_TYPES) and not isinstance(value, (bytes,))


def as_text(name: str, value: Any) -> str | None:
    """Return the value of a parameter as text; None for what belongs to a session."""
    if value is None or name in HorovodParamsWritable.unsaved_params:
        return None
    return str(codec.dumps_base64(value))


class HorovodParamsWriter:
    """Writes an instance; `overwrite()` allows that there is something already."""

    def __init__(self, instance: Any) -> None:
        """Write nothing yet."""
        self.instance = instance
        self._may_overwrite = False
        self._options: dict[str, Any] = {}

    def overwrite(self) -> HorovodParamsWriter:
        """Replace what is at the path."""
        self._may_overwrite = True
        return self

    def option(self, key: str, value: Any) -> HorovodParamsWriter:
        """Set an option of the file system."""
        self._options[key] = value
        return self

    def session(self, spark: Any) -> HorovodParamsWriter:
        """Take a session, which is not needed."""
        del spark
        return self

    def save(self, path: str) -> None:
        """Write the instance to a folder."""
        filesystem, inner = open_filesystem(path, self._options)
        if filesystem.exists(inner):
            if not self._may_overwrite:
                message = f"{path} exists; use write().overwrite().save(path) to replace it"
                raise FileExistsError(message)
            filesystem.rm(inner, recursive=True)
        filesystem.makedirs(f"{inner}/metadata", exist_ok=True)
        metadata, blob = describe(self.instance)
        with filesystem.open(f"{inner}/{_BLOB}", "wb") as file:
            file.write(blob)
        with filesystem.open(f"{inner}/{_METADATA}", "w") as file:
            file.write(metadata + "\n")
        filesystem.touch(f"{inner}/metadata/_SUCCESS")


def describe(instance: Any) -> tuple[str, bytes]:
    """Return the two files: one line of JSON, and the pickle of all that JSON cannot hold."""
    values = {param.name: value for param, value in instance._paramMap.items()}  # noqa: SLF001
    values = {name: value for name, value in values.items() if name not in instance.unsaved_params}
    plain = {name: value for name, value in values.items() if is_json(value)}
    rest = {name: instance.pack_param(name, values[name]) for name in values if name not in plain}
    cls = type(instance)
    metadata = {
        "class": f"{cls.__module__}.{cls.__qualname__}",
        "timestamp": int(time.time() * 1000),
        "sparkVersion": import_module("pyspark").__version__,
        "uid": instance.uid,
        "paramMap": plain,
        "defaultParamMap": {},
    }
    # One pickle: an optimizer keeps the parameters of the model that is saved with it.
    return json.dumps(metadata), cloudpickle.dumps(rest)


class HorovodParamsReader:
    """Reads an instance of a class."""

    def __init__(self, cls: type[Any]) -> None:
        """Read nothing yet."""
        self.cls = cls

    def session(self, spark: Any) -> HorovodParamsReader:
        """Take a session, which is not needed."""
        del spark
        return self

    def load(self, path: str) -> Any:
        """Return the instance that is in a folder."""
        filesystem, inner = open_filesystem(path)
        if not filesystem.exists(f"{inner}/{_METADATA}"):
            message = f"{path} holds no saved {self.cls.__name__}: there is no {_METADATA}"
            raise FileNotFoundError(message)
        with filesystem.open(f"{inner}/{_METADATA}", "r") as file:
            metadata = json.loads(file.readline())
        expected = f"{self.cls.__module__}.{self.cls.__qualname__}"
        if metadata["class"] != expected:
            message = f"{path} holds a {metadata['class']}, not a {expected}"
            raise ValueError(message)
        with filesystem.open(f"{inner}/{_BLOB}", "rb") as file:
            rest = cloudpickle.loads(file.read())
        instance = self.cls()
        instance._resetUid(metadata["uid"])  # noqa: SLF001
        for name, value in metadata["paramMap"].items():
            instance._paramMap[instance.getParam(name)] = value  # noqa: SLF001
        for name, value in rest.items():
            instance._paramMap[instance.getParam(name)] = instance.unpack_param(name, value)  # noqa: SLF001
        return instance


class HorovodParamsWritable(MLWritable):
    """Gives a class `write()` and `save(path)`."""

    # What belongs to a session, and not to a saved estimator.
    unsaved_params: tuple[str, ...] = ("backend", "store")

    def write(self) -> HorovodParamsWriter:
        """Return a writer of this instance."""
        return HorovodParamsWriter(self)

    def save(self, path: str) -> None:
        """Write this instance to a folder that does not exist yet."""
        self.write().save(path)

    def pack_param(self, name: str, value: Any) -> Any:
        """Return a value in a form that can be pickled."""
        del name
        return value


class HorovodParamsReadable(MLReadable):
    """Gives a class `read()` and `load(path)`."""

    @classmethod
    def read(cls) -> HorovodParamsReader:
        """Return a reader of this class."""
        return HorovodParamsReader(cls)

    @classmethod
    def load(cls: type[_Readable], path: str) -> _Readable:  # noqa: PYI019 - Python 3.10 has no Self
        """Return the instance that is in a folder."""
        instance: _Readable = cls.read().load(path)
        return instance

    def unpack_param(self, name: str, value: Any) -> Any:
        """Return what `pack_param` was given."""
        del name
        return value
