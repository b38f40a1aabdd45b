"""The command, also as `python -m foretell`."""

from foretell.cli.main import main

if __name__ == "__main__":
    main()
