"""`python -m pirn [OPTION OF python]... PROGRAM [ARGUMENT]...`: the same interpreter, on virtual threads."""

import os
import sys
import sysconfig


def command() -> str:
    """Returns the path of `pirn`, which the installation has put where scripts go."""
    schemes = (None, sysconfig.get_preferred_scheme("user")) if sys.version_info >= (3, 10) else (None,)
    for scheme in schemes:
        folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        path = os.path.join(folder, "pirn")
        if os.path.isfile(path):
            return path
    return "pirn"


def main() -> None:
    """Becomes `pirn run python ARGUMENT...`."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m pirn [OPTION OF python]... PROGRAM [ARGUMENT]...")
    arguments = ["pirn", "run", sys.executable, *sys.argv[1:]]
    try:
        os.execvp(command(), arguments)
    except OSError as error:
        sys.exit(f"pirn: the command that this package installs cannot be run: {error}")


if __name__ == "__main__":
    main()
