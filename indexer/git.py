"""Running git on a repository that nobody vouches for.

Only plumbing is run, with an environment made from nothing: no configuration of the user or the
system, no hooks, pager, filters, text converters or external diff programs, no replaced objects,
no network. Neither the work tree nor git's index is read, so the attributes and links in them count
for nothing, and a bare clone gives the same rows.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self

from indexer.byte_stream import ByteStream
from indexer.errors import BadSource, IndexerError

_OPTIONS: Final = (
    "--no-pager",
    "--no-optional-locks",
    "--literal-pathspecs",
    *("-c", "core.quotePath=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.attributesFile=/dev/null"),
    # A larger file counts as binary, so that git does not hold it in memory twice.
    *("-c", "core.bigFileThreshold=16m"),
    *("-c", "diff.suppressBlankEmpty=false"),
)
_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    # A partial clone would fetch what it lacks, by a command that its configuration names.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
}
_GITHUB: Final = re.compile(
    r"(?:(?:https?|git|ssh)://(?:[^/@]+@)?github\.com(?::\d+)?/|(?:[^/@]+@)?github\.com:/?)"
    r"(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?"
)
_SHA: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository: the folder of its objects and refs, and its work tree's or its own name."""

    folder: Path
    name: str

    @classmethod
    def at(cls, path: Path) -> Self:
        """Return the repository at `path`, a work tree or a bare clone; raises BadSource."""
        path = path.resolve()
        if not path.is_dir():
            raise BadSource(f"There is no folder {path}.")
        # The ceiling: a folder inside somebody's work tree is not that repository.
        environment = {**_environment(), "GIT_CEILING_DIRECTORIES": str(path.parent)}
        command = ["git", "-C", str(path), "-c", "safe.directory=*", "rev-parse"]
        found = _finish([*command, "--absolute-git-dir"], environment)
        if found.returncode:
            raise BadSource(f"{path} is no git repository: {_said(found.stderr)}")
        folder = Path(os.fsdecode(found.stdout.rstrip(b"\n")))
        name = path.parent.name if path.name == ".git" else path.name.removesuffix(".git")
        return cls(folder, name)

    def run(self, *arguments: str) -> bytes:
        """Return what a git command prints; raises BadSource with its message if it fails."""
        done = self._run(*arguments)
        if done.returncode:
            raise BadSource(f"git {arguments[0]} failed in {self.folder}: {_said(done.stderr)}")
        return done.stdout

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of a git command on this repository."""
        where = (f"--git-dir={self.folder}", f"--work-tree={self.folder}")
        return ["git", "-C", str(self.folder), *where, *_OPTIONS, *arguments]

    def commit_of(self, revision: str) -> str | None:
        """Return the commit that a full ref or object name leads to, None where there is none."""
        options = ("--verify", "--quiet", "--end-of-options")
        done = self._run("rev-parse", *options, f"{revision}^{{commit}}")
        sha = done.stdout.decode("ascii", "replace").strip()
        return sha if done.returncode == 0 and _SHA.fullmatch(sha) else None

    def branch(self, name: str | None) -> tuple[str, str]:
        """Return a branch's name and newest commit; None is the branch that is checked out.

        A branch that is only on the remote counts too. Raises BadSource where there is none.
        """
        if name is None:
            head = self._run("symbolic-ref", "--quiet", "HEAD").stdout
            name = os.fsdecode(head.rstrip(b"\n")).removeprefix("refs/heads/") or "HEAD"
        refs = ["HEAD"] if name == "HEAD" else [f"refs/heads/{name}", f"refs/remotes/origin/{name}"]
        for ref in refs:
            if commit := self.commit_of(ref):
                return name, commit
        raise BadSource(f"{self.folder} has no commit on a branch {name}.")

    def github_name(self) -> str | None:
        """Return owner/name if the repository was cloned from GitHub."""
        done = self._run("config", "--get", "remote.origin.url")
        found = _GITHUB.fullmatch(done.stdout.decode("utf-8", "replace").strip())
        return found["name"] if found else None

    def shallow_commits(self) -> frozenset[str]:
        """Return the commits at which a shallow clone was cut: their parents are missing."""
        where = os.fsdecode(self.run("rev-parse", "--git-path", "shallow").rstrip(b"\n"))
        path = self.folder / where
        return frozenset(path.read_text("ascii").split()) if path.is_file() else frozenset()

    def _environment(self) -> dict[str, str]:
        # diff-tree would take attributes from an index.
        return {**_environment(), "GIT_INDEX_FILE": str(self.folder / "no-such-index")}

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return _finish(self.command(*arguments), self._environment())

    @contextmanager
    def stream(self, *arguments: str, stdin: IO[bytes] | None = None) -> Iterator[ByteStream]:
        """Run a git command and yield what it prints; raises BadSource if it fails."""
        with self.process(*arguments, stdin=stdin or subprocess.DEVNULL) as process:
            yield ByteStream(process.stdout)  # type: ignore[arg-type]

    @contextmanager
    def process(self, *arguments: str, stdin: IO[bytes] | int) -> Iterator[subprocess.Popen[bytes]]:
        """Yield a running git command, ended at the latest with the block.

        Raises BadSource when it fails, or when the block found its output cut short.
        """
        with tempfile.TemporaryFile() as errors:
            process = _start(self.command(*arguments), self._environment(), stdin, errors)
            cut = False
            try:
                yield process
            except EOFError:
                cut = True
            except BaseException:
                process.kill()
                raise
            finally:
                _close(process)
            if process.returncode or cut:
                errors.seek(0)
                said = _said(errors.read())
                raise BadSource(f"git {arguments[0]} failed in {self.folder}: {said}")


def lines_of(data: bytes) -> list[str]:
    """Return the lines of a command that prints object names."""
    return data.decode("ascii").split()


def _start(
    command: Sequence[str], environment: dict[str, str], stdin: IO[bytes] | int, errors: IO[bytes]
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 (fixed words and checked names, no shell)
            command, bufsize=0, env=environment, stdin=stdin, stdout=subprocess.PIPE, stderr=errors
        )
    except FileNotFoundError:
        raise IndexerError("The program git is not installed.") from None


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
    process.wait()


def _finish(
    command: Sequence[str], environment: dict[str, str]
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except FileNotFoundError:
        raise IndexerError("The program git is not installed.") from None


def _environment() -> dict[str, str]:
    return {**_ENVIRONMENT, "PATH": os.environ.get("PATH", os.defpath)}


def _said(errors: bytes) -> str:
    """Return the last words of a command's messages."""
    return errors.decode("utf-8", "replace").strip()[-500:] or "it said nothing"
