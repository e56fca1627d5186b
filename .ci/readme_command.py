"""Give the README's command that follows the marker `<!-- command: NAME -->`."""

import re
import sys
from pathlib import Path


def command(name: str) -> str:
    """Return the shell text of the fenced block under the marker `name`."""
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    pattern = rf"<!-- command: {re.escape(name)} -->\s*```(?:bash|sh)\n(.*?)```"
    found = re.search(pattern, readme, flags=re.DOTALL)
    if found is None:
        raise SystemExit(f"README.md has no command block marked '{name}'.")
    return found.group(1).strip()


if __name__ == "__main__":
    sys.stdout.write(command(sys.argv[1]) + "\n")
