-- The one truth for the tables, indexes, roles and grants of an index (contract version 1).
-- Idempotent. Run by `manage.py index_init`, or by hand:
--     psql -v dimensions=384 -f schema.sql "$INDEX_OWNER_URL"
-- The first run needs a role that may create roles and extensions; later runs need rag_owner only.

DO $$
BEGIN
    -- Roles belong to the whole server: another database may be getting its index right now.
    BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rag_owner') THEN
            CREATE ROLE rag_owner LOGIN;
        END IF;
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rag_reader') THEN
            CREATE ROLE rag_reader LOGIN;
        END IF;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL;
    END;
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') THEN
        CREATE EXTENSION vector;
    END IF;
    IF EXISTS (SELECT FROM pg_available_extensions
                WHERE name = 'pg_textsearch' AND installed_version IS NULL)
       AND pg_has_role('pg_read_all_settings', 'USAGE') THEN
        -- It refuses to work unless the server was started with it.
        IF current_setting('shared_preload_libraries') LIKE '%pg_textsearch%' THEN
            CREATE EXTENSION pg_textsearch;
        END IF;
    END IF;
    IF current_user <> 'rag_owner' THEN
        EXECUTE format('REVOKE TEMPORARY, CREATE ON DATABASE %I FROM PUBLIC', current_database());
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO rag_owner, rag_reader', current_database());
        EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO rag_owner', current_database());
        GRANT CREATE, USAGE ON SCHEMA public TO rag_owner;
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rag_reader'
                          AND 'default_transaction_read_only=on' = ANY (rolconfig)) THEN
            ALTER ROLE rag_reader SET default_transaction_read_only = on;
        END IF;
        SET ROLE rag_owner;
    END IF;
END
$$;

CREATE TABLE IF NOT EXISTS search_docs (
    vector_id      text COLLATE "C" PRIMARY KEY,
    repo           text NOT NULL,
    type           text NOT NULL,
    state          text NOT NULL DEFAULT '',
    labels         text[] NOT NULL DEFAULT '{}',
    milestone      text NOT NULL DEFAULT '',
    assignees      text[] NOT NULL DEFAULT '{}',
    created_at     timestamptz,
    updated_at     timestamptz,
    number         integer NOT NULL DEFAULT 0,
    tag_name       text NOT NULL DEFAULT '',
    doc_path       text NOT NULL DEFAULT '',
    wiki_extension text NOT NULL DEFAULT '',
    commit_sha     text NOT NULL DEFAULT '',
    file_path      text NOT NULL DEFAULT '',
    file_status    text NOT NULL DEFAULT '',
    commit_date    timestamptz,
    commit_author  text NOT NULL DEFAULT '',
    author         text NOT NULL DEFAULT '',
    comment_id     bigint NOT NULL DEFAULT 0,
    review_id      bigint NOT NULL DEFAULT 0,
    line           integer NOT NULL DEFAULT 0,
    title          text NOT NULL DEFAULT '',
    title_fts      text NOT NULL DEFAULT '',
    content        text NOT NULL DEFAULT '',
    content_fts    text NOT NULL DEFAULT '',
    -- Half precision: the snapshot format carries float16, and the rows stay on their page.
    embedding      halfvec(:dimensions),
    indexed_at     timestamptz NOT NULL DEFAULT now(),
    -- For PostgreSQL's own full-text search; stored, because ts_rank reads it for every match.
    title_tsv      tsvector GENERATED ALWAYS AS (to_tsvector('simple', title_fts)) STORED,
    content_tsv    tsvector GENERATED ALWAYS AS (to_tsvector('simple', content_fts)) STORED
);

-- Finds the vector of a content that was embedded before. Not left to the end of a bulk load: the
-- load itself asks.
CREATE INDEX IF NOT EXISTS search_docs_content_hash ON search_docs (hashtextextended(content, 0));

CREATE TABLE IF NOT EXISTS doc_edges (
    src_vector_id text COLLATE "C" NOT NULL,
    dst_vector_id text COLLATE "C" NOT NULL,
    repo          text NOT NULL,
    src_slug      text NOT NULL DEFAULT '',
    dst_slug      text NOT NULL DEFAULT '',
    edge_kind     text NOT NULL DEFAULT 'mention',
    updated_at    timestamptz,
    PRIMARY KEY (src_vector_id, dst_vector_id)
);

CREATE TABLE IF NOT EXISTS index_info (
    id                 boolean PRIMARY KEY DEFAULT true CHECK (id),
    contract_version   integer NOT NULL,
    embedding_model    text NOT NULL,
    dimensions         integer NOT NULL,
    normaliser_version text NOT NULL,
    source             text NOT NULL DEFAULT '',
    built_at           timestamptz,
    written_at         timestamptz,
    lexical_probe      jsonb
);

-- Document frequencies of the common lexemes, for the bounded cost of the core text engine.
CREATE TABLE IF NOT EXISTS term_frequencies (
    field     text COLLATE "C" NOT NULL,
    lexeme    text COLLATE "C" NOT NULL,
    documents integer NOT NULL,
    PRIMARY KEY (field, lexeme)
);

GRANT USAGE ON SCHEMA public TO rag_reader;
GRANT SELECT ON search_docs, doc_edges, index_info, term_frequencies TO rag_reader;

-- indexes: a bulk load into an empty table runs this part last

CREATE INDEX IF NOT EXISTS search_docs_embedding ON search_docs
    USING hnsw (embedding halfvec_cosine_ops);
CREATE INDEX IF NOT EXISTS search_docs_content_tsv ON search_docs USING gin (content_tsv);
CREATE INDEX IF NOT EXISTS search_docs_title_tsv ON search_docs USING gin (title_tsv);
CREATE INDEX IF NOT EXISTS search_docs_repo_updated ON search_docs (repo, updated_at DESC);
CREATE INDEX IF NOT EXISTS search_docs_updated ON search_docs (updated_at DESC NULLS LAST, vector_id);
CREATE INDEX IF NOT EXISTS search_docs_created ON search_docs (created_at DESC NULLS LAST, vector_id);
CREATE INDEX IF NOT EXISTS search_docs_thread ON search_docs (repo, number) WHERE number <> 0;
CREATE INDEX IF NOT EXISTS search_docs_doc_path ON search_docs (repo, doc_path) WHERE doc_path <> '';
CREATE INDEX IF NOT EXISTS search_docs_file_path ON search_docs (repo, file_path) WHERE file_path <> '';
CREATE INDEX IF NOT EXISTS search_docs_commit ON search_docs (commit_sha text_pattern_ops)
    WHERE commit_sha <> '';
CREATE INDEX IF NOT EXISTS search_docs_type ON search_docs (type, state);
CREATE INDEX IF NOT EXISTS search_docs_milestone ON search_docs (milestone) WHERE milestone <> '';
CREATE INDEX IF NOT EXISTS search_docs_labels ON search_docs USING gin (labels);
CREATE INDEX IF NOT EXISTS search_docs_assignees ON search_docs USING gin (assignees);
CREATE INDEX IF NOT EXISTS doc_edges_dst ON doc_edges (dst_vector_id);

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_textsearch') THEN
        CREATE INDEX IF NOT EXISTS search_docs_content_bm25 ON search_docs
            USING bm25 (content_fts) WITH (text_config = 'simple');
        CREATE INDEX IF NOT EXISTS search_docs_title_bm25 ON search_docs
            USING bm25 (title_fts) WITH (text_config = 'simple');
    END IF;
END
$$;

RESET ROLE;
