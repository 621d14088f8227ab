"""`python -m onert`: every command, even if the installed scripts are not on the path."""

import sys

from onert.tools.commands import main

if __name__ == "__main__":
    sys.exit(main())
