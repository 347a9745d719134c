-- Accounts. account_key is the SHA-256 of the bare JID. Names are compared byte by byte.
CREATE TABLE users (
  account_key BYTEA NOT NULL PRIMARY KEY,
  domainpart TEXT COLLATE "C" NOT NULL,
  localpart TEXT COLLATE "C" NOT NULL,
  sha1_salt BYTEA NOT NULL,
  sha1_iterations INTEGER NOT NULL,
  sha1_stored_key BYTEA NOT NULL,
  sha1_server_key BYTEA NOT NULL,
  sha256_salt BYTEA NOT NULL,
  sha256_iterations INTEGER NOT NULL,
  sha256_stored_key BYTEA NOT NULL,
  sha256_server_key BYTEA NOT NULL
);

CREATE INDEX users_by_name ON users (domainpart, localpart);

-- A row that sorts behind every account, so that there is always a row to read for a name without
-- an account.
INSERT INTO users VALUES (
  decode(repeat('ff', 32), 'hex'), '', '',
  decode(repeat('00', 16), 'hex'), 1,
  decode(repeat('00', 20), 'hex'), decode(repeat('00', 20), 'hex'),
  decode(repeat('00', 16), 'hex'), 1,
  decode(repeat('00', 32), 'hex'), decode(repeat('00', 32), 'hex')
);

-- Random bytes by name.
CREATE TABLE secrets (
  name VARCHAR(255) COLLATE "C" NOT NULL PRIMARY KEY,
  value BYTEA NOT NULL
);

-- Subscription requests that wait for their contacts. pair_key is the SHA-256 of "requester contact".
CREATE TABLE subscription_requests (
  id BIGSERIAL NOT NULL PRIMARY KEY,
  pair_key BYTEA NOT NULL UNIQUE,
  contact_key BYTEA NOT NULL,
  sender_key BYTEA NOT NULL,
  requester TEXT COLLATE "C" NOT NULL,
  contact TEXT COLLATE "C" NOT NULL,
  sender TEXT COLLATE "C" NOT NULL,
  stanza BYTEA NOT NULL,
  origin TEXT COLLATE "C" NOT NULL,
  process BIGINT NOT NULL,
  sequence BIGINT NOT NULL
);

CREATE INDEX subscription_requests_by_contact ON subscription_requests (contact_key);

CREATE INDEX subscription_requests_by_sender ON subscription_requests (sender_key);
