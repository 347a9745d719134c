-- Accounts and pairs by the SHA-256 of their JIDs, as all engines have them.
-- causeway_sha256() is a function of the program.
DELETE FROM users WHERE domainpart = char(0x10ffff);

ALTER TABLE users RENAME TO users_1;

CREATE TABLE users (
  account_key BLOB PRIMARY KEY,
  domainpart TEXT NOT NULL,
  localpart TEXT NOT NULL,
  sha1_salt BLOB NOT NULL,
  sha1_iterations INTEGER NOT NULL,
  sha1_stored_key BLOB NOT NULL,
  sha1_server_key BLOB NOT NULL,
  sha256_salt BLOB NOT NULL,
  sha256_iterations INTEGER NOT NULL,
  sha256_stored_key BLOB NOT NULL,
  sha256_server_key BLOB NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO users
  SELECT causeway_sha256(localpart || '@' || domainpart), domainpart, localpart,
    sha1_salt, sha1_iterations, sha1_stored_key, sha1_server_key,
    sha256_salt, sha256_iterations, sha256_stored_key, sha256_server_key
  FROM users_1;

-- A row that sorts behind every account, so that there is always a row to read for a name without
-- an account.
INSERT INTO users VALUES (
  x'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', '', '',
  zeroblob(16), 1, zeroblob(20), zeroblob(20),
  zeroblob(16), 1, zeroblob(32), zeroblob(32)
);

CREATE INDEX users_by_name ON users (domainpart, localpart);

DROP TABLE users_1;

DROP INDEX subscription_requests_by_sender;

ALTER TABLE subscription_requests RENAME TO subscription_requests_1;

CREATE TABLE subscription_requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  pair_key BLOB NOT NULL UNIQUE,
  contact_key BLOB NOT NULL,
  sender_key BLOB NOT NULL,
  requester TEXT NOT NULL,
  contact TEXT NOT NULL,
  sender TEXT NOT NULL,
  stanza BLOB NOT NULL,
  origin TEXT NOT NULL,
  process INTEGER NOT NULL,
  sequence INTEGER NOT NULL
) STRICT;

INSERT INTO subscription_requests
  SELECT id, causeway_sha256(requester || ' ' || contact), causeway_sha256(contact),
    causeway_sha256(sender), requester, contact, sender, stanza, origin, process, sequence
  FROM subscription_requests_1;

CREATE INDEX subscription_requests_by_contact ON subscription_requests (contact_key);

CREATE INDEX subscription_requests_by_sender ON subscription_requests (sender_key);

DROP TABLE subscription_requests_1;
