"""System checks of the search: do the backends that the settings name exist?"""

from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string

from search import conf
from search.rerank import SHORT_NAMES


@register()
def backends_exist(**_kwargs: Any) -> list[CheckMessage]:
    """Return an error for each backend that cannot be imported, or lacks its address."""
    reranker = conf.get("SEARCH_RERANKER")
    paths = {
        "SEARCH_EMBEDDER": conf.get("SEARCH_EMBEDDER"),
        "SEARCH_RERANKER": SHORT_NAMES.get(reranker, reranker),
    }
    found: list[CheckMessage] = [
        Error(
            f"{name} names {path!r}, which cannot be imported.",
            hint="Give the dotted path of a class; see docs/settings.md.",
            id="search.E001",
        )
        for name, path in paths.items()
        if path and not _importable(path)
    ]
    needed = {
        "SEARCH_RERANK_URL": reranker == "http",
        "SEARCH_EMBED_URL": paths["SEARCH_EMBEDDER"].endswith(".OpenAIEmbedder"),
    }
    found += [
        Error(
            f"{name} is not set, and the backend that the settings name asks there.",
            hint="Give the address; see docs/settings.md.",
            id="search.E002",
        )
        for name, is_needed in needed.items()
        if is_needed and not conf.get(name)
    ]
    return found


def _importable(path: str) -> bool:
    try:
        import_string(path)
    except ImportError:
        return False
    return True
