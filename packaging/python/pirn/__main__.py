"""`python -m pirn [OPTION OF python]... PROGRAM [ARGUMENT]...`: the same interpreter, on virtual threads."""

import os
import shutil
import sys
import sysconfig


def command() -> str:
    """Returns the path of `pirn`, which the installation has put where scripts go."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", "posix_user")]
    return shutil.which("pirn", path=os.pathsep.join(folders)) or "pirn"


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
