"""Small conversions for the templates of the inspection page."""

from django import template
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString

from ingest_readonly.models import SearchDoc
from search.entities import entity_key
from search.inspection.answer import web_address as checked
from search.inspection.form import Parameters

register = template.Library()


@register.filter
def web_address(url: str) -> str:
    """Return the address if it may become a link, else nothing."""
    return checked(url)


@register.filter
def joined(text: str, more: object) -> str:
    """Return both texts as one."""
    return f"{text}{more}"


@register.filter
def key_of_row(row: SearchDoc) -> str:
    """Return the key of the entity that a row of the index points at."""
    return entity_key(
        vector_id=row.vector_id,
        repo=row.repo,
        type=row.type,
        number=row.number,
        doc_path=row.doc_path,
        file_path=row.file_path,
    )


@register.simple_tag
def replaced(given: Parameters, name: str, value: str) -> SafeString:
    """Return the query string with one parameter replaced."""
    return conditional_escape(given.with_(**{name: value}).query_string)
