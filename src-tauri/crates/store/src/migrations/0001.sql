-- The first schema. Bodies of items are the contract's JSON with a version beside it; what a tool call was given
-- and gave back is in its body, and there is no second copy of it in columns.

CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
-- The oldest schema version an app must know to read and write this file.
INSERT INTO meta VALUES ('min_reader', 1);

CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX conversations_by_age ON conversations (updated_at);

CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    status TEXT NOT NULL,
    error_json TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER
) STRICT;
CREATE INDEX turns_of ON turns (conversation_id, started_at);
CREATE INDEX turns_running ON turns (started_at) WHERE status = 'running';

CREATE TABLE items (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    turn_id TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    body_v INTEGER NOT NULL,
    body_json TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    completed_at INTEGER,
    -- 1 while it streams or its call has no result: what a start after a crash has to settle.
    unsettled INTEGER NOT NULL,
    UNIQUE (conversation_id, ordinal)
) STRICT;
CREATE INDEX items_unsettled ON items (seq) WHERE unsettled = 1;

-- The words of settled messages, and the only copy of them outside the body. Trigrams, so that Chinese is found.
CREATE VIRTUAL TABLE items_fts USING fts5 (text, tokenize = 'trigram');
-- What is deleted leaves no trigrams behind.
INSERT INTO items_fts (items_fts, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER items_gone AFTER DELETE ON items BEGIN
    DELETE FROM items_fts WHERE rowid = old.seq;
END;

-- The bytes are files; `fresh` until an item names them, so that a deletion elsewhere does not take them.
CREATE TABLE blobs (
    id TEXT PRIMARY KEY,
    mime TEXT NOT NULL,
    size INTEGER NOT NULL,
    fresh INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE item_blobs (
    item_seq INTEGER NOT NULL REFERENCES items (seq) ON DELETE CASCADE,
    blob_id TEXT NOT NULL,
    PRIMARY KEY (item_seq, blob_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX item_blobs_of ON item_blobs (blob_id);

CREATE TABLE servers (
    id TEXT PRIMARY KEY,
    launch_fingerprint TEXT,
    approved_at INTEGER,
    revision TEXT,
    last_ready_at INTEGER
) STRICT;

CREATE TABLE policies (
    id TEXT PRIMARY KEY,
    effect TEXT NOT NULL,
    kind TEXT NOT NULL,
    server_id TEXT NOT NULL,
    tool TEXT,
    conversation_id TEXT,
    fingerprint TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX policies_of_chat ON policies (conversation_id) WHERE conversation_id IS NOT NULL;

CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    kind TEXT NOT NULL,
    server_id TEXT NOT NULL,
    tool TEXT,
    conversation_id TEXT,
    outcome TEXT NOT NULL,
    reader TEXT,
    policy_id TEXT,
    -- Of the arguments or command that were decided about.
    digest TEXT NOT NULL,
    -- Of what it was about in a word, with a nonce; the word itself is beside, so that it can go with its chat.
    object_digest TEXT,
    prev_hash TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN
    SELECT RAISE (ABORT, 'the activity log is only ever added to');
END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN
    SELECT RAISE (ABORT, 'the activity log is only ever added to');
END;
-- INSERT OR REPLACE deletes without asking the trigger above.
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE id = new.id) BEGIN
    SELECT RAISE (ABORT, 'the activity log is only ever added to');
END;
CREATE TABLE audit_objects (
    audit_id INTEGER PRIMARY KEY,
    conversation_id TEXT,
    nonce TEXT NOT NULL,
    object TEXT NOT NULL
) STRICT;
CREATE INDEX audit_objects_of ON audit_objects (conversation_id) WHERE conversation_id IS NOT NULL;
