"""A D1 export, or a dump of the sqlite3 shell: the rows of the two tables that an index is made of.

The text is read as data. Nothing of it is run: column names are taken from CREATE TABLE, values
from INSERT … VALUES, both for `search_docs` and `doc_edges` alone; every other statement is passed
over and counted. A statement that cannot be read costs itself, not the file.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from indexer import d1_values
from indexer.d1_lexer import END, LONGEST_VALUE, Lexer, Token
from indexer.d1_values import Value, describe
from indexer.errors import BadRecord, BadSource
from indexer.packed import Packed

TABLES: Final = frozenset({"search_docs", "doc_edges"})
_MOST_COLUMNS: Final = 100  # of a table, by D1
_MOST_ARGUMENTS: Final = 100  # of a function, by SQLite
_MOST_NAMES: Final = 200  # that are counted apart
_DEEPEST: Final = 8  # calls within calls; dumps nest two
_CONSTRAINTS: Final = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"})


@dataclass(frozen=True, slots=True)
class D1Row:
    """A row of the export: its line, table and columns, or what is wrong with it."""

    line: int
    table: str
    values: dict[str, Value]
    problem: str | None = None


class D1Export:
    """Iterates over the rows; `ignored` counts the statements passed over, by what they are for.

    Raises BadSource where the text breaks off.
    """

    def __init__(self, source: Packed) -> None:
        self.ignored: Counter[str] = Counter()
        self._source = source
        self._lexer = Lexer(source)
        self._token = END
        self._columns: dict[str, tuple[str, ...]] = {}

    def __iter__(self) -> Iterator[D1Row]:
        self._take(keep=False)
        while self._token is not END:
            line = self._lexer.line
            try:
                yield from self._statement()
            except BadRecord as error:
                yield D1Row(line, "", {}, str(error))
            self._skip_to_semicolon()
            self._take(keep=False)

    def _statement(self) -> Iterator[D1Row]:
        keyword = self._token.keyword
        if keyword == "CREATE":
            self._create()
        elif keyword in {"INSERT", "REPLACE"}:
            yield from self._insert()
        elif not self._token.mark:
            self._ignore(keyword or describe(self._token))
        elif self._token.mark != ";":
            raise BadRecord(f"a statement was expected, not {describe(self._token)}")

    def _ignore(self, what: str) -> None:
        # A file may name any number of tables.
        known = what in self.ignored or len(self.ignored) < _MOST_NAMES
        self.ignored[what[:60] if known else "others"] += 1

    def _create(self) -> None:
        """Learn the columns of a table; at a trigger go to its end, past the semicolons in it."""
        self._take()
        if self._token.keyword in {"TEMP", "TEMPORARY"}:
            self._take()
        what = self._token.keyword
        self._take()
        if what == "TRIGGER":
            self._skip_trigger()
        if what != "TABLE":
            self._ignore(f"CREATE {what}")
            return
        if self._token.keyword == "IF":
            for word in ("IF", "NOT", "EXISTS"):
                self._expect(word)
        table = self._table()
        if table in TABLES:
            self._columns[table] = self._read_columns()
        else:
            self._ignore(table)

    def _read_columns(self) -> tuple[str, ...]:
        """Return the names before the first blank of each definition that is no constraint."""
        names: list[str] = []
        self._expect("(")
        depth, at_start = 1, True
        while depth:
            if at_start and self._token.keyword not in _CONSTRAINTS:
                self._add_name(names)
            mark = self._token.mark
            if self._token is END:
                raise self._cut_short()
            depth += (mark == "(") - (mark == ")")
            at_start = mark == "," and depth == 1
            self._take()
        return tuple(names)

    def _insert(self) -> Iterator[D1Row]:
        self._into()
        table = self._table()
        if table not in TABLES:
            self._ignore(table)
            return
        columns = self._named_columns() if self._token.mark == "(" else self._columns.get(table)
        if columns is None:
            raise BadRecord(
                f"it names no columns, and no CREATE TABLE {table} came before: export the schema "
                "with the data"
            )
        if self._token.keyword != "VALUES":
            raise BadRecord("only INSERT … VALUES with literal values is read")
        self._take()
        while True:
            line = self._lexer.line
            values = self._row(len(columns))
            yield D1Row(line, table, dict(zip(columns, values, strict=True)))
            if self._token.mark != ",":
                break
            self._take()
        if self._token.mark != ";" and self._token is not END:
            raise BadRecord(f"{describe(self._token)} follows the values")

    def _into(self) -> None:
        while self._token.keyword in {"INSERT", "REPLACE", "OR", "IGNORE", "ABORT"}:
            self._take()
        self._expect("INTO")

    def _named_columns(self) -> tuple[str, ...]:
        self._expect("(")
        names: list[str] = []
        self._add_name(names)
        while self._token.mark == ",":
            self._take()
            self._add_name(names)
        self._expect(")")
        return tuple(names)

    def _row(self, count: int) -> list[Value]:
        """Take the values of one row in brackets; raises BadRecord unless there are `count`."""
        self._expect("(")
        values = [self._value(0)]
        size = 0
        while self._token.mark == ",":
            size += len(values[-1]) if isinstance(values[-1], str | bytes) else 0
            if size > LONGEST_VALUE or len(values) >= _MOST_COLUMNS:
                raise BadRecord("a row is longer than D1 stores")
            self._take()
            values.append(self._value(0))
        self._expect(")")
        if len(values) != count:
            raise BadRecord(f"a row holds {len(values)} values for {count} columns")
        return values

    def _value(self, depth: int) -> Value:
        if depth > _DEEPEST:
            raise BadRecord(f"calls are nested deeper than {_DEEPEST}")
        values = [self._term(depth)]
        while self._token.mark == "||":
            self._take()
            values.append(self._term(depth))
        return d1_values.concatenate(values) if len(values) > 1 else values[0]

    def _term(self, depth: int) -> Value:
        token = self._token
        if token is END:
            raise self._cut_short()
        self._take()
        if token.mark in {"-", "+"}:
            value = d1_values.negative(d1_values.literal(self._token))
            self._take()
            return value if token.mark == "-" else d1_values.negative(value)
        if token.kind != "word" or self._token.mark != "(":
            return d1_values.literal(token)
        self._take()
        arguments = [self._value(depth + 1)]
        while self._token.mark == "," and len(arguments) < _MOST_ARGUMENTS:
            self._take()
            arguments.append(self._value(depth + 1))
        self._expect(")")
        return d1_values.call(token.text, arguments)

    def _table(self) -> str:
        """Take the name of a table, with or without that of its database."""
        name = self._name()
        if self._token.mark == ".":
            self._take()
            name = self._name()
        return name

    def _name(self) -> str:
        """Take a name, quoted in any of the ways of SQLite or bare; lower case, as it compares."""
        if self._token.kind not in {"word", "name", "text"}:
            raise self._unexpected("a name")
        name = self._token.text.lower()[:200]
        self._take()
        return name

    def _add_name(self, names: list[str]) -> None:
        name = self._name()
        if name in names:
            raise BadRecord(f"the column {name[:60]} is named twice")
        if len(names) == _MOST_COLUMNS:
            raise BadRecord(f"more than {_MOST_COLUMNS} columns are named")
        names.append(name)

    def _expect(self, what: str) -> None:
        if what not in {self._token.mark, self._token.keyword}:
            raise self._unexpected(what)
        self._take()

    def _unexpected(self, what: str) -> BadRecord | BadSource:
        if self._token is END:
            return self._cut_short()
        return BadRecord(f"{what} was expected, not {describe(self._token)}")

    def _cut_short(self) -> BadSource:
        return BadSource(f"{self._source.name} is cut short after line {self._lexer.line}")

    def _take(self, *, keep: bool = True) -> None:
        # Should the lexer refuse the next token, the one before it is not read again.
        self._token = Token("mark", "")
        self._token = self._lexer.next(keep=keep)

    def _skip_to_semicolon(self) -> None:
        while self._token.mark != ";" and self._token is not END:
            self._take(keep=False)

    def _skip_trigger(self) -> None:
        """Go to the semicolon after END: the body of a trigger ends with `; END ;`."""
        last_two = ("", "")
        while self._token is not END:
            word = self._token.mark or self._token.keyword
            if (*last_two, word) == (";", "END", ";"):
                return
            last_two = (last_two[1], word or "?")
            self._take(keep=False)
