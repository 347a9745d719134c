-- Private XML storage. account_key is the SHA-256 of the bare JID, element_key that of
-- "name namespace". The content is UTF-8.
CREATE TABLE private_storage (
  account_key BYTEA NOT NULL,
  element_key BYTEA NOT NULL,
  content BYTEA NOT NULL,
  content_bytes INTEGER NOT NULL,
  PRIMARY KEY (account_key, element_key)
);

-- vCards, in UTF-8. account_key is the SHA-256 of the bare JID.
CREATE TABLE vcards (
  account_key BYTEA NOT NULL PRIMARY KEY,
  content BYTEA NOT NULL
);

-- The last logouts: milliseconds since 1970, and the status in UTF-8. account_key is the SHA-256 of
-- the bare JID.
CREATE TABLE last_activity (
  account_key BYTEA NOT NULL PRIMARY KEY,
  logged_out_at BIGINT NOT NULL,
  status BYTEA NOT NULL
);
