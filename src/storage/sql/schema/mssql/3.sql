-- Private XML storage. account_key is the SHA-256 of the bare JID, element_key that of
-- "name namespace". The content is UTF-8.
CREATE TABLE private_storage (
  account_key BINARY(32) NOT NULL,
  element_key BINARY(32) NOT NULL,
  content VARBINARY(MAX) NOT NULL,
  content_bytes INT NOT NULL,
  PRIMARY KEY (account_key, element_key)
);

-- vCards, in UTF-8. account_key is the SHA-256 of the bare JID.
CREATE TABLE vcards (
  account_key BINARY(32) NOT NULL PRIMARY KEY,
  content VARBINARY(MAX) NOT NULL
);

-- The last logouts: milliseconds since 1970, and the status in UTF-8. account_key is the SHA-256 of
-- the bare JID.
CREATE TABLE last_activity (
  account_key BINARY(32) NOT NULL PRIMARY KEY,
  logged_out_at BIGINT NOT NULL,
  status VARBINARY(MAX) NOT NULL
);
