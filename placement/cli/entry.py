"""What `train.py` and `evaluate.py` share: a user's mistake ends with one line on stderr and exit code 2, no traceback.

`HYDRA_FULL_ERROR=1` in the environment shows tracebacks all the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from placement.config import ConfigError
from placement.netlist.errors import DesignError

MISTAKES = (ConfigError, DesignError, OmegaConfBaseException, OSError)
"""What is told in one line: wrong settings, unusable files."""
INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""
FULL_ERROR = "HYDRA_FULL_ERROR"


def refuse(message: str, *, code: int = 2) -> NoReturn:
    """Ends the program with `message` as one line on stderr."""
    print(f"{Path(sys.argv[0]).name}: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


def in_brackets(argument: str, lists: Sequence[str]) -> str:
    """`key=a,b` as `key=[a,b]` where `key` is one of `lists`; everything else as it is."""
    key, equals, value = argument.partition("=")
    return f"{key}=[{value}]" if equals and key in lists and not value.startswith("[") else argument


def run(main: Callable[[], object], *, settings: str, lists: Sequence[str] = ()) -> None:
    """Runs a Hydra entry point; what Hydra itself refuses is told in one line.

    Args:
        main: the function that `hydra.main` decorates.
        settings: where the settings are listed, for messages.
        lists: settings that are lists, which may be given as `key=a,b`; Hydra alone would take that for a sweep.
    """
    wants_traceback = os.environ.get(FULL_ERROR) == "1"
    sys.argv = [in_brackets(argument, lists) for argument in sys.argv]
    os.environ[FULL_ERROR] = "1"  # else Hydra prints such errors itself, in several lines
    try:
        main()
    except KeyboardInterrupt:  # before the run could take it
        sys.exit(INTERRUPTED)
    except OverrideParseException as error:
        if wants_traceback:
            raise
        refuse(f"cannot read {error.override!r}; special characters need quotes: 'placement=\"a=b.plc\"'")
    except (HydraException, OmegaConfBaseException) as error:
        if wants_traceback:
            raise
        refuse(f"{str(error).splitlines()[0]} ({settings} lists the settings)")
