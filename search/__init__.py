"""The search service: ranks, fuses, reranks and collapses rows of the index."""
