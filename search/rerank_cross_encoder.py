"""A cross-encoder in this process: the setting SEARCH_RERANKER is `cross_encoder`.

Needs the package sentence-transformers and a model on this machine; nothing is downloaded.
"""

import logging
import threading
from collections.abc import Sequence
from typing import Any

from search import conf
from search.rerank import RerankError, Score

logger = logging.getLogger(__name__)


class CrossEncoderReranker:
    """Scores with the model at SEARCH_RERANK_MODEL: a folder, or a name in the local cache.

    The model's own tokenizer cuts a query and text that are together longer than it can read.
    """

    name = "cross_encoder"

    def __init__(self) -> None:
        self._model: Any = None
        self._lock = threading.Lock()  # two passes at once would only share the same cores

    def score(self, query: str, texts: Sequence[str]) -> Sequence[Score]:
        """Return a score a text; raises RerankError if there is no model.

        The first call loads the model. It does so here, where the stage's time limit holds, and
        not while the backend is made: a search that comes too early goes on without scores.
        """
        with self._lock:
            self._model = self._model or _load(conf.get("SEARCH_RERANK_MODEL"))
            pairs = [(query, text) for text in texts]
            scores = self._model.predict(pairs, show_progress_bar=False)
        return [float(score) for score in scores]


def _load(model: str) -> Any:
    if not model:
        raise RerankError("SEARCH_RERANK_MODEL is not set")
    try:
        from sentence_transformers import CrossEncoder
    except ImportError:
        raise RerankError(
            "the package sentence-transformers is not installed: pip install sentence-transformers"
        ) from None
    try:
        return CrossEncoder(model, local_files_only=True)
    except Exception as error:
        logger.exception("The reranker model could not be loaded")
        raise RerankError("the model at SEARCH_RERANK_MODEL could not be loaded") from error
