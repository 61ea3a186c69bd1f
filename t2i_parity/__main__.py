"""``t2i-parity`` and ``python -m t2i_parity``: every command, or the pip command that brings them."""

import sys

from t2i_parity.dataset_builder.errors import not_installed


def main() -> None:
    """Run what the process's arguments ask for; without the extra that brings the commands, say so and end with exit code 2."""
    try:
        from t2i_parity.dataset_builder.console import main as console

        console()
    except ModuleNotFoundError as error:
        print(f"error: {not_installed(error)}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
