-- Keys of archives. owner_key is the SHA-256 of the key that an archive has among archives: a bare JID,
-- and behind it the creation of the account. bare_key and host_key are those of the bare JID and of its
-- domain. account_key stays that of the bare JID, unless an archive of another owner has that row.
-- Archives of earlier versions have no owner: the first one who asks for them by their bare JID becomes
-- it. oldest_sent_at is at most the sent_at of each message; 0 says that this is not known.
ALTER TABLE archives ADD COLUMN owner_key BYTEA;

ALTER TABLE archives ADD COLUMN bare_key BYTEA;

ALTER TABLE archives ADD COLUMN host_key BYTEA;

ALTER TABLE archives ADD COLUMN oldest_sent_at BIGINT NOT NULL DEFAULT 0;

CREATE INDEX archives_by_bare_jid ON archives (bare_key);

CREATE INDEX archives_by_age ON archives (oldest_sent_at);

CREATE INDEX archives_by_host_and_age ON archives (host_key, oldest_sent_at);
