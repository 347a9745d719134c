-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- Accounts that were moved from other servers may have one of the two keys.
ALTER TABLE users
  MODIFY sha1_salt VARBINARY(255) NULL,
  MODIFY sha1_iterations INTEGER NULL,
  MODIFY sha1_stored_key VARBINARY(20) NULL,
  MODIFY sha1_server_key VARBINARY(20) NULL,
  MODIFY sha256_salt VARBINARY(255) NULL,
  MODIFY sha256_iterations INTEGER NULL,
  MODIFY sha256_stored_key VARBINARY(32) NULL,
  MODIFY sha256_server_key VARBINARY(32) NULL;
