"""A repository that grows by random operations."""

import itertools
import random
import subprocess
from pathlib import Path


class History:
    """A bare repository that grows by random operations on two branches."""

    def __init__(self, path: Path, chooser: random.Random) -> None:
        self.path = path
        self._chooser = chooser
        self._clock = itertools.count(1_700_000_000, 60)
        self._words = itertools.count()
        # Branch → its commits, each with its files.
        self.branches: dict[str, list[tuple[str, dict[str, str]]]] = {"main": [], "side": []}
        subprocess.run(
            ["git", "init", "--quiet", "--bare", "--initial-branch=main", str(path)], check=True
        )
        self._commit("main", {"README.md": self._text(), "app.py": self._text()})
        self.branches["side"] = self.branches["main"][:]

    def step(self) -> str:
        """Do one operation and return its name."""
        operation, weight = zip(
            *{
                self._add: 25,
                self._edit: 35,
                self._rename: 12,
                self._delete: 10,
                self._merge: 14,
                self._reset: 4,
            }.items(),
            strict=True,
        )
        (chosen,) = self._chooser.choices(operation, weight)
        chosen()
        return chosen.__name__

    def _add(self) -> None:
        branch, files = self._pick()
        folder = self._chooser.choice(["", "docs/", "src/a b/", "設計/"])
        suffix = self._chooser.choice([".md", ".py", ".rst", ".txt"])
        self._commit(branch, {**files, f"{folder}f{next(self._words) % 40}{suffix}": self._text()})

    def _edit(self) -> None:
        branch, files = self._pick()
        for path in self._chooser.sample(sorted(files), min(len(files), 2)):
            lines = files[path].split("\n")
            lines[self._chooser.randrange(len(lines))] = f"edit {next(self._words)}"
            files[path] = "\n".join(lines)
        self._commit(branch, files)

    def _rename(self) -> None:
        branch, files = self._pick()
        if files:
            old = self._chooser.choice(sorted(files))
            text = files.pop(old)
            if self._chooser.random() < 0.5:
                text += f"renamed {next(self._words)}\n"
            files[self._chooser.choice(["", "moved/"]) + old.rpartition("/")[2]] = text
        self._commit(branch, files)

    def _delete(self) -> None:
        branch, files = self._pick()
        if len(files) > 1:
            del files[self._chooser.choice(sorted(files))]
        self._commit(branch, files)

    def _merge(self) -> None:
        """Each path comes from one of the sides, or is edited by hand."""
        into, other = self._chooser.sample(["main", "side"], 2)
        ours, theirs = self.branches[into][-1][1], self.branches[other][-1][1]
        merged = {}
        for path in ours.keys() | theirs.keys():
            choice = self._chooser.choice([ours, theirs])
            if path in choice:
                merged[path] = choice[path]
                if self._chooser.random() < 0.1:
                    merged[path] += f"by hand {next(self._words)}\n"
        self._commit(into, merged, self.branches[other][-1][0])

    def _reset(self) -> None:
        branch = self._chooser.choice(["main", "side"])
        commits = self.branches[branch]
        back = self._chooser.randrange(1, min(len(commits), 6) + 1)
        self.branches[branch] = commits[: len(commits) - back + 1]
        self._git("update-ref", f"refs/heads/{branch}", self.branches[branch][-1][0])

    def _pick(self) -> tuple[str, dict[str, str]]:
        branch = self._chooser.choice(["main", "main", "side"])
        return branch, dict(self.branches[branch][-1][1])

    def _text(self) -> str:
        return "".join(f"line {next(self._words)}\n" for _ in range(self._chooser.randint(1, 20)))

    def _commit(self, branch: str, files: dict[str, str], merged: str = "") -> None:
        when = f"A <a@b> {next(self._clock) - self._chooser.randrange(400)} +0900"
        message = f"commit {next(self._words)}".encode()
        commits = self.branches[branch]
        head = f"commit refs/heads/{branch}\nauthor {when}\ncommitter {when}\n".encode()
        parts = [head, b"data %d\n%b\n" % (len(message), message)]
        parts += [f"from {commits[-1][0]}\n".encode()] if commits else []
        parts += [f"merge {merged}\n".encode()] if merged else []
        parts.append(b"deleteall\n")
        for path, text in files.items():
            data = text.encode()
            parts.append(
                f'M 100644 inline "{path}"\n'.encode() + b"data %d\n%b\n" % (len(data), data)
            )
        # Force: a branch that was reset is written over.
        self._git("fast-import", "--quiet", "--force", stdin=b"".join(parts))
        commits.append((self._git("rev-parse", f"refs/heads/{branch}"), files))

    def _git(self, *arguments: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments], input=stdin, capture_output=True, check=True
        )
        return done.stdout.decode().strip()
