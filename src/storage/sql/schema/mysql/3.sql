-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- Private XML storage. account_key is the SHA-256 of the bare JID, element_key that of
-- "name namespace".
CREATE TABLE IF NOT EXISTS private_storage (
  account_key BINARY(32) NOT NULL,
  element_key BINARY(32) NOT NULL,
  content LONGBLOB NOT NULL,
  content_bytes INTEGER NOT NULL,
  PRIMARY KEY (account_key, element_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- vCards, in UTF-8. account_key is the SHA-256 of the bare JID.
CREATE TABLE IF NOT EXISTS vcards (
  account_key BINARY(32) NOT NULL PRIMARY KEY,
  content LONGBLOB NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- The last logouts: milliseconds since 1970, and the status in UTF-8. account_key is the SHA-256 of
-- the bare JID.
CREATE TABLE IF NOT EXISTS last_activity (
  account_key BINARY(32) NOT NULL PRIMARY KEY,
  logged_out_at BIGINT NOT NULL,
  status BLOB NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
