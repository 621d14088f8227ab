"""`python -m onert`: every command, without their scripts being on the path."""

import sys

from onert.tools.commands import main

if __name__ == "__main__":
    sys.exit(main())
