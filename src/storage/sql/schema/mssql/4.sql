-- Accounts that were moved from other servers may have one of the two keys.
ALTER TABLE users ALTER COLUMN sha1_salt VARBINARY(255) NULL;

ALTER TABLE users ALTER COLUMN sha1_iterations INT NULL;

ALTER TABLE users ALTER COLUMN sha1_stored_key VARBINARY(20) NULL;

ALTER TABLE users ALTER COLUMN sha1_server_key VARBINARY(20) NULL;

ALTER TABLE users ALTER COLUMN sha256_salt VARBINARY(255) NULL;

ALTER TABLE users ALTER COLUMN sha256_iterations INT NULL;

ALTER TABLE users ALTER COLUMN sha256_stored_key VARBINARY(32) NULL;

ALTER TABLE users ALTER COLUMN sha256_server_key VARBINARY(32) NULL;
