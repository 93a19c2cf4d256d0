"""A scripted model server for the tests; the product does not use it."""

from .http import Server, digest
from .script import Script, ScriptError, load, scripts_of

__all__ = ["Script", "ScriptError", "Server", "digest", "load", "scripts_of"]
