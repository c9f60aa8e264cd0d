"""Repositories of these tests, made by git itself."""

import os
import subprocess
from pathlib import Path
from typing import Any

AUTHOR = "Ada Lovelace"
# Seconds from 1970 of the first commit; each commit is a minute later.
START = 1_700_000_000


class GitRepository:
    """A work tree with a repository; commits are made with a clock of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = START
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str | bytes, stdin: bytes = b"", **environment: str) -> str:
        """Run git and return what it prints, stripped."""
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments],
            env={**self._environment(), **environment},
            input=stdin,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout.decode(errors="surrogateescape").strip()

    def write(self, name: str | bytes, content: str | bytes) -> None:
        data = content.encode() if isinstance(content, str) else content
        path = os.path.join(os.fsencode(self.path), os.fsencode(name))  # noqa: PTH118
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(data)

    def commit(self, message: str = "change", *options: str, **files: str | bytes) -> str:
        """Write files (`a_md` is a.md), add everything, commit, and return the commit."""
        for name, content in files.items():
            self.write(name.replace("_", "."), content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message, *options)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def raw_commit(self, text: bytes) -> str:
        """Write a commit object as it is and make it the head; `%tree` and `%parent` are set."""
        text = text.replace(b"%tree", self.git("write-tree").encode())
        text = text.replace(b"%parent", self.head().encode())
        sha = self.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=text)
        (self.path / ".git" / "refs" / "heads" / "main").write_text(f"{sha}\n")
        return sha

    def clone(self, path: Path, *options: str) -> Path:
        self.git("clone", "--quiet", *options, self.path.as_uri(), str(path))
        return path

    def _environment(self) -> dict[str, Any]:
        self.clock += 60
        who = {"NAME": AUTHOR, "EMAIL": "ada@example.com", "DATE": f"{self.clock} +0900"}
        people = {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in who.items()
        }
        quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
        return {"PATH": os.environ["PATH"], **quiet, **people}
