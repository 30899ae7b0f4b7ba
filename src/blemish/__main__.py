"""``python -m blemish`` is the ``blemish`` command."""

from blemish.cli.main import app

if __name__ == "__main__":
    app()
