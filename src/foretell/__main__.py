"""python -m foretell: the same as the command."""

from foretell.cli.main import main

if __name__ == "__main__":
    main()
