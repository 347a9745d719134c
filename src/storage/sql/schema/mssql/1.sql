-- Text is UTF-8 in VARBINARY, compared byte by byte. An index holds names of up to 1700 bytes.
-- Accounts. account_key is the SHA-256 of the bare JID.
CREATE TABLE users (
  account_key BINARY(32) NOT NULL PRIMARY KEY,
  domainpart VARBINARY(1023) NOT NULL,
  localpart VARBINARY(1023) NOT NULL,
  sha1_salt VARBINARY(255) NOT NULL,
  sha1_iterations INT NOT NULL,
  sha1_stored_key VARBINARY(20) NOT NULL,
  sha1_server_key VARBINARY(20) NOT NULL,
  sha256_salt VARBINARY(255) NOT NULL,
  sha256_iterations INT NOT NULL,
  sha256_stored_key VARBINARY(32) NOT NULL,
  sha256_server_key VARBINARY(32) NOT NULL
);

CREATE INDEX users_by_name ON users (domainpart, localpart);

-- A row that sorts behind every account, so that there is always a row to read for a name without
-- an account.
INSERT INTO users VALUES (
  CONVERT(BINARY(32), REPLICATE('ff', 32), 2), 0x, 0x,
  CONVERT(BINARY(16), REPLICATE('00', 16), 2), 1,
  CONVERT(BINARY(20), REPLICATE('00', 20), 2), CONVERT(BINARY(20), REPLICATE('00', 20), 2),
  CONVERT(BINARY(16), REPLICATE('00', 16), 2), 1,
  CONVERT(BINARY(32), REPLICATE('00', 32), 2), CONVERT(BINARY(32), REPLICATE('00', 32), 2)
);

-- Random bytes by name.
CREATE TABLE secrets (
  name VARBINARY(255) NOT NULL PRIMARY KEY,
  value VARBINARY(255) NOT NULL
);

-- Subscription requests that wait for their contacts. pair_key is the SHA-256 of "requester contact".
CREATE TABLE subscription_requests (
  id BIGINT IDENTITY NOT NULL PRIMARY KEY,
  pair_key BINARY(32) NOT NULL UNIQUE,
  contact_key BINARY(32) NOT NULL,
  sender_key BINARY(32) NOT NULL,
  requester VARBINARY(2047) NOT NULL,
  contact VARBINARY(2047) NOT NULL,
  sender VARBINARY(2047) NOT NULL,
  stanza VARBINARY(MAX) NOT NULL,
  origin VARBINARY(1023) NOT NULL,
  process BIGINT NOT NULL,
  sequence BIGINT NOT NULL
);

CREATE INDEX subscription_requests_by_contact ON subscription_requests (contact_key);

CREATE INDEX subscription_requests_by_sender ON subscription_requests (sender_key);
