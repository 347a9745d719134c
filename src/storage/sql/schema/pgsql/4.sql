-- Accounts that were moved from other servers may have one of the two keys.
ALTER TABLE users ALTER COLUMN sha1_salt DROP NOT NULL;

ALTER TABLE users ALTER COLUMN sha1_iterations DROP NOT NULL;

ALTER TABLE users ALTER COLUMN sha1_stored_key DROP NOT NULL;

ALTER TABLE users ALTER COLUMN sha1_server_key DROP NOT NULL;

ALTER TABLE users ALTER COLUMN sha256_salt DROP NOT NULL;

ALTER TABLE users ALTER COLUMN sha256_iterations DROP NOT NULL;

ALTER TABLE users ALTER COLUMN sha256_stored_key DROP NOT NULL;

ALTER TABLE users ALTER COLUMN sha256_server_key DROP NOT NULL;
