-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- Rosters, by the SHA-256 of the bare JIDs of owner and contact. The bits of state are explained in
-- sql_roster_store.ts; details is a JSON array of the contact's name and groups.
CREATE TABLE IF NOT EXISTS rosters (
  owner_key BINARY(32) NOT NULL PRIMARY KEY,
  owner VARBINARY(2047) NOT NULL,
  version BIGINT NOT NULL,
  removed_version BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS roster_items (
  owner_key BINARY(32) NOT NULL,
  contact_key BINARY(32) NOT NULL,
  contact VARBINARY(2047) NOT NULL,
  state INTEGER NOT NULL,
  version BIGINT NOT NULL,
  details MEDIUMBLOB NOT NULL,
  request MEDIUMBLOB,
  PRIMARY KEY (owner_key, contact_key)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
