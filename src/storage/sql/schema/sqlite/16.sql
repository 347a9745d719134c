-- Words of archived messages, of hosts that search their archives. A row is that of a message at the
-- same place of archive_messages, and its words are those of the same rowid. Each set of words has one
-- that names the archive. Rows without a message are left by programs of earlier versions, which
-- remove messages alone.
CREATE TABLE archive_texts (
  id INTEGER PRIMARY KEY,
  account_key BLOB NOT NULL,
  position INTEGER NOT NULL,
  UNIQUE (account_key, position)
) STRICT;

CREATE VIRTUAL TABLE archive_words
  USING fts5 (words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

CREATE TRIGGER archive_texts_deletion AFTER DELETE ON archive_texts
  BEGIN DELETE FROM archive_words WHERE rowid = OLD.id; END;
