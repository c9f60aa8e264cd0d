"""The statements that move staged rows into a table of the index."""

from collections.abc import Sequence

from psycopg import sql

from indexer.records import Values


def latest(records: Sequence[Values], *key: str) -> list[Values]:
    """Keep the last of records with one key: a statement cannot touch a row twice."""
    return list({tuple(record[name] for name in key): record for record in records}.values())


def staged(table: str) -> sql.Identifier:
    """Return the name of the temporary table that is shaped like `table`."""
    return sql.Identifier(f"staged_{table}")


def stage(table: str, columns: Sequence[str]) -> sql.Composed:
    """Return the statement that makes the temporary table of `table`, gone at the commit."""
    return sql.SQL(
        "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA"
    ).format(staged(table), _names(columns), sql.Identifier(table))


def fill(table: str, columns: Sequence[str]) -> sql.Composed:
    """Return the COPY that fills the temporary table of `table`."""
    return sql.SQL("COPY {} ({}) FROM STDIN").format(staged(table), _names(columns))


def upsert(table: str, columns: Sequence[str], key: Sequence[str]) -> sql.Composed:
    """Return the statement that moves what is staged for `table` into it.

    It returns a row for each row written: true where it was inserted, false where updated.
    """
    rest = [name for name in columns if name not in key]
    stamp = sql.SQL(", indexed_at = now()" if table == "search_docs" else "")
    return sql.SQL(
        "INSERT INTO {table} AS kept ({names}) SELECT {names} FROM {staged} "
        "ON CONFLICT ({key}) DO UPDATE SET {assign}{stamp} "
        "WHERE ({mine}) IS DISTINCT FROM ({theirs}) RETURNING xmax = 0"
    ).format(
        table=sql.Identifier(table),
        staged=staged(table),
        names=_names(columns),
        key=_names(key),
        assign=sql.SQL(", ").join(
            sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in rest
        ),
        stamp=stamp,
        mine=sql.SQL(", ").join(sql.Identifier("kept", name) for name in rest),
        theirs=sql.SQL(", ").join(sql.Identifier("excluded", name) for name in rest),
    )


def _names(columns: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))
