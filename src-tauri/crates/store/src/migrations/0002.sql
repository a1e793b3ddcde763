-- What is past its time may go. A checkpoint stays behind, a row of the log like any other: its digest is the last
-- row that went, as `<id>:<hash>`, and only what such a row covers can be deleted.
CREATE INDEX audit_checkpoints ON audit (id) WHERE kind = 'checkpoint';
DROP TRIGGER audit_no_delete;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
WHEN NOT EXISTS (
    SELECT 1 FROM audit WHERE kind = 'checkpoint' AND id > old.id AND CAST(digest AS INTEGER) >= old.id
) BEGIN
    SELECT RAISE (ABORT, 'the activity log is only ever added to');
END;
