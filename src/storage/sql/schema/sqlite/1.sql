-- Accounts by name, as built-in stores had them before version 2.
CREATE TABLE users (
  domainpart TEXT NOT NULL,
  localpart TEXT NOT NULL,
  sha1_salt BLOB NOT NULL,
  sha1_iterations INTEGER NOT NULL,
  sha1_stored_key BLOB NOT NULL,
  sha1_server_key BLOB NOT NULL,
  sha256_salt BLOB NOT NULL,
  sha256_iterations INTEGER NOT NULL,
  sha256_stored_key BLOB NOT NULL,
  sha256_server_key BLOB NOT NULL,
  PRIMARY KEY (domainpart, localpart)
) STRICT, WITHOUT ROWID;

CREATE TABLE secrets (
  name TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE subscription_requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  requester TEXT NOT NULL,
  contact TEXT NOT NULL,
  sender TEXT NOT NULL,
  stanza BLOB NOT NULL,
  origin TEXT NOT NULL,
  process INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  UNIQUE (contact, requester)
) STRICT;

CREATE INDEX subscription_requests_by_sender ON subscription_requests (sender);

-- A row that sorts behind every account.
INSERT INTO users VALUES (
  char(0x10ffff), '',
  zeroblob(16), 1, zeroblob(20), zeroblob(20),
  zeroblob(16), 1, zeroblob(32), zeroblob(32)
);
