"""Run the command line with `python -m foretell`."""

from foretell.cli.main import main

if __name__ == "__main__":
    main()
