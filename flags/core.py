"""The flags as upstream's scripts import them: `from flags import core`.

The package itself imports `official_transformer.commands`: a folder `flags`
of a user's own, where a command is started, must not stand in its way.
"""

from official_transformer.commands.flags_core import *  # noqa: F403
from official_transformer.commands.flags_core import __all__  # noqa: F401
