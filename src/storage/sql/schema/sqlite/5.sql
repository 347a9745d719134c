-- Accounts that were moved from other servers may have one of the two keys.
DROP INDEX users_by_name;

ALTER TABLE users RENAME TO users_4;

CREATE TABLE users (
  account_key BLOB PRIMARY KEY,
  domainpart TEXT NOT NULL,
  localpart TEXT NOT NULL,
  sha1_salt BLOB,
  sha1_iterations INTEGER,
  sha1_stored_key BLOB,
  sha1_server_key BLOB,
  sha256_salt BLOB,
  sha256_iterations INTEGER,
  sha256_stored_key BLOB,
  sha256_server_key BLOB
) STRICT, WITHOUT ROWID;

INSERT INTO users SELECT * FROM users_4;

CREATE INDEX users_by_name ON users (domainpart, localpart);

DROP TABLE users_4;
