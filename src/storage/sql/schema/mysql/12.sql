-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- Keys of archives. owner_key is the SHA-256 of the key that an archive has among archives: a bare JID,
-- and behind it the creation of the account. bare_key and host_key are those of the bare JID and of its
-- domain. account_key stays that of the bare JID, unless an archive of another owner has that row.
-- Archives of earlier versions have no owner: the first one who asks for them by their bare JID becomes
-- it. oldest_sent_at is at most the sent_at of each message; 0 says that this is not known.
ALTER TABLE archives
  ADD COLUMN owner_key BINARY(32),
  ADD COLUMN bare_key BINARY(32),
  ADD COLUMN host_key BINARY(32),
  ADD COLUMN oldest_sent_at BIGINT NOT NULL DEFAULT 0,
  ADD INDEX archives_by_bare_jid (bare_key),
  ADD INDEX archives_by_age (oldest_sent_at),
  ADD INDEX archives_by_host_and_age (host_key, oldest_sent_at);
