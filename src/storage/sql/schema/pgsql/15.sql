-- Words of archived messages, of hosts that search their archives. A row is that of a message at the
-- same place of archive_messages. Each set of words has one that names the archive. Rows without a
-- message are left by programs of earlier versions, which remove messages alone.
CREATE TABLE archive_texts (
  account_key BYTEA NOT NULL,
  position BIGINT NOT NULL,
  words TSVECTOR NOT NULL,
  PRIMARY KEY (account_key, position)
);

CREATE INDEX archive_texts_by_words ON archive_texts USING GIN (words);
