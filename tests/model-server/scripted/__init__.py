"""A model server that plays scripts. A part of the tests; nothing of the product uses it."""

from .http import Server, digest
from .script import Script, ScriptError, load, scripts_of

__all__ = ["Script", "ScriptError", "Server", "digest", "load", "scripts_of"]
