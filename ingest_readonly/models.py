"""The mirror of the index: unmanaged models of tables that somebody else writes.

The columns and their meaning are in docs/index-contract.md. Three guards keep the mirror
read-only, from the outside in: the database role has SELECT alone, its transactions are read-only,
and the router refuses to name a database for writing.
"""

from typing import Any, NoReturn

from django.contrib.postgres.fields import ArrayField
from django.db import models
from pgvector.django import HalfVectorField

from ingest_readonly.errors import ReadOnlyIndex


class MirrorModel(models.Model):
    """A row that can be read only."""

    class Meta:
        abstract = True
        managed = False

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ReadOnlyIndex

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ReadOnlyIndex


class SearchDoc(MirrorModel):
    """One indexed row: an issue, a comment, a document, one file of one commit, ..."""

    vector_id = models.TextField(primary_key=True)
    repo = models.TextField()
    type = models.TextField()
    state = models.TextField()
    labels = ArrayField(models.TextField())
    milestone = models.TextField()
    assignees = ArrayField(models.TextField())
    created_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(null=True)
    number = models.IntegerField()
    tag_name = models.TextField()
    doc_path = models.TextField()
    wiki_extension = models.TextField()
    commit_sha = models.TextField()
    file_path = models.TextField()
    file_status = models.TextField()
    commit_date = models.DateTimeField(null=True)
    commit_author = models.TextField()
    author = models.TextField()
    comment_id = models.BigIntegerField()
    review_id = models.BigIntegerField()
    line = models.IntegerField()
    title = models.TextField()
    title_fts = models.TextField()
    content = models.TextField()
    content_fts = models.TextField()
    embedding = HalfVectorField(null=True)
    indexed_at = models.DateTimeField()

    class Meta(MirrorModel.Meta):
        db_table = "search_docs"
        verbose_name = "indexed row"

    def __str__(self) -> str:
        return self.vector_id


class DocEdge(MirrorModel):
    """A mention of one wiki page in another; its target may be missing.

    The key is both ends. The admin takes no composite keys, so the source stands for it here:
    edges are filtered, never looked up by key.
    """

    src_vector_id = models.TextField(primary_key=True)
    dst_vector_id = models.TextField()
    repo = models.TextField()
    src_slug = models.TextField()
    dst_slug = models.TextField()
    edge_kind = models.TextField()
    updated_at = models.DateTimeField(null=True)

    class Meta(MirrorModel.Meta):
        db_table = "doc_edges"
        verbose_name = "edge"

    def __str__(self) -> str:
        return f"{self.src_slug} → {self.dst_slug}"


class IndexInfo(MirrorModel):
    """What the index was built with, and when: one row."""

    id = models.BooleanField(primary_key=True)
    contract_version = models.IntegerField()
    embedding_model = models.TextField()
    dimensions = models.IntegerField()
    normaliser_version = models.TextField()
    source = models.TextField()
    built_at = models.DateTimeField(null=True)
    written_at = models.DateTimeField(null=True)
    lexical_probe = models.JSONField(null=True)

    class Meta(MirrorModel.Meta):
        db_table = "index_info"
        verbose_name = "index info"
        verbose_name_plural = "index info"

    def __str__(self) -> str:
        return self.source or "index"


MIRRORED: tuple[type[MirrorModel], ...] = (SearchDoc, DocEdge, IndexInfo)
