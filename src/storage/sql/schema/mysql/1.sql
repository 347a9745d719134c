-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- Text is UTF-8 in VARBINARY, compared byte by byte: CONVERT(localpart USING utf8mb4) shows it.
-- Accounts. account_key is the SHA-256 of the bare JID.
CREATE TABLE IF NOT EXISTS users (
  account_key BINARY(32) NOT NULL PRIMARY KEY,
  domainpart VARBINARY(1023) NOT NULL,
  localpart VARBINARY(1023) NOT NULL,
  sha1_salt VARBINARY(255) NOT NULL,
  sha1_iterations INTEGER NOT NULL,
  sha1_stored_key VARBINARY(20) NOT NULL,
  sha1_server_key VARBINARY(20) NOT NULL,
  sha256_salt VARBINARY(255) NOT NULL,
  sha256_iterations INTEGER NOT NULL,
  sha256_stored_key VARBINARY(32) NOT NULL,
  sha256_server_key VARBINARY(32) NOT NULL,
  INDEX users_by_name (domainpart, localpart)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- A row that sorts behind every account, so that there is always a row to read for a name without
-- an account.
INSERT IGNORE INTO users VALUES (
  UNHEX(REPEAT('ff', 32)), '', '',
  UNHEX(REPEAT('00', 16)), 1, UNHEX(REPEAT('00', 20)), UNHEX(REPEAT('00', 20)),
  UNHEX(REPEAT('00', 16)), 1, UNHEX(REPEAT('00', 32)), UNHEX(REPEAT('00', 32))
);

-- Random bytes by name.
CREATE TABLE IF NOT EXISTS secrets (
  name VARBINARY(255) NOT NULL PRIMARY KEY,
  value VARBINARY(255) NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- Subscription requests that wait for their contacts. pair_key is the SHA-256 of "requester contact".
CREATE TABLE IF NOT EXISTS subscription_requests (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  pair_key BINARY(32) NOT NULL,
  contact_key BINARY(32) NOT NULL,
  sender_key BINARY(32) NOT NULL,
  requester VARBINARY(2047) NOT NULL,
  contact VARBINARY(2047) NOT NULL,
  sender VARBINARY(2047) NOT NULL,
  stanza MEDIUMBLOB NOT NULL,
  origin VARBINARY(1023) NOT NULL,
  process BIGINT NOT NULL,
  sequence BIGINT NOT NULL,
  UNIQUE INDEX subscription_requests_by_pair (pair_key),
  INDEX subscription_requests_by_contact (contact_key),
  INDEX subscription_requests_by_sender (sender_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
