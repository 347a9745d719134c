-- Private XML storage. account_key is the SHA-256 of the bare JID, element_key that of
-- "name namespace". The content is UTF-8.
CREATE TABLE private_storage (
  account_key BLOB NOT NULL,
  element_key BLOB NOT NULL,
  content BLOB NOT NULL,
  content_bytes INTEGER NOT NULL,
  PRIMARY KEY (account_key, element_key)
) STRICT;

-- vCards, in UTF-8. account_key is the SHA-256 of the bare JID.
CREATE TABLE vcards (
  account_key BLOB PRIMARY KEY NOT NULL,
  content BLOB NOT NULL
) STRICT;

-- The last logouts: milliseconds since 1970, and the status in UTF-8. account_key is the SHA-256 of
-- the bare JID.
CREATE TABLE last_activity (
  account_key BLOB PRIMARY KEY NOT NULL,
  logged_out_at INTEGER NOT NULL,
  status BLOB NOT NULL
) STRICT;
