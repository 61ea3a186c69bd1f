"""T2I Parity: does a text-to-image system serve everyone equally, whatever their language, dialect or country?

The rooms (``dataset_builder``, ``metrics``, ``generate``, ``validation``, ``cards``) stand at the top of the repository, where people look
for them; the links in this folder make them one package, so that an installation takes a single name in the user's environment.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("t2i-parity")
except PackageNotFoundError:  # the code of a Space, which is copied and not installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
