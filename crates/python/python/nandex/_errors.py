"""The exceptions of nandex: each is an `Error`, and the built-in exception that fits.

Those that are an `OSError` have an `errno`.
"""

from __future__ import annotations

__all__ = [
    "ClosedError",
    "ConfigError",
    "DamagedError",
    "DeviceError",
    "Error",
    "ExistsError",
    "ForkedError",
    "FormatError",
    "FullError",
    "InUseError",
    "InputError",
    "InputTypeError",
    "InternalError",
    "KeyNotFoundError",
    "MissingError",
    "RamError",
    "ReadOnlyError",
    "UnsupportedError",
]


class Error(Exception):
    """The base class of all exceptions of the package."""

    __module__ = "nandex"


class KeyNotFoundError(Error, KeyError):
    """A key without a value."""

    __module__ = "nandex"


class ConfigError(Error, ValueError):
    """Options that cannot work, such as a rate of 2 or a text that is no size."""

    __module__ = "nandex"


class InputError(Error, ValueError):
    """Keys or values that the structure does not take, such as a key of another width."""

    __module__ = "nandex"


class InputTypeError(Error, TypeError):
    """Keys, values or options of a type that is not accepted, such as an array of objects, or a bool as a number."""

    __module__ = "nandex"


class ClosedError(Error, ValueError):
    """A structure or database that was closed."""

    __module__ = "nandex"


class ForkedError(Error, RuntimeError):
    """A handle that was inherited from the parent process. Open the file in this process instead."""

    __module__ = "nandex"


class FormatError(Error, ValueError):
    """A file that is no nandex volume, or one of a version that this nandex does not read."""

    __module__ = "nandex"


class UnsupportedError(Error, NotImplementedError):
    """An operation that this kind of structure does not support."""

    __module__ = "nandex"


class RamError(Error, MemoryError):
    """A request for more RAM than the database was given."""

    __module__ = "nandex"


class InUseError(Error, OSError):
    """A file that another process or handle has open, or a structure that is open already."""

    __module__ = "nandex"


class ExistsError(Error, FileExistsError):
    """A file that must be new and exists."""

    __module__ = "nandex"


class MissingError(Error, FileNotFoundError):
    """A file that must exist and does not, or a volume without this structure."""

    __module__ = "nandex"


class ReadOnlyError(Error, OSError):
    """An update of a database that is open read-only."""

    __module__ = "nandex"


class FullError(Error, OSError):
    """A full structure whose policy is to refuse, or a full disk."""

    __module__ = "nandex"


class DamagedError(Error, OSError):
    """Bytes on flash that differ from those that were written."""

    __module__ = "nandex"


class DeviceError(Error, OSError):
    """A failed read or write, or a volume that refuses writes after one."""

    __module__ = "nandex"


class InternalError(Error, RuntimeError):
    """A defect of nandex itself. Report it; durable data is unharmed."""

    __module__ = "nandex"
