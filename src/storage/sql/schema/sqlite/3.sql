-- Rosters, by the SHA-256 of the bare JIDs of owner and contact. The bits of state are explained in
-- sql_roster_store.ts; details is a JSON array of the contact's name and groups.
CREATE TABLE rosters (
  owner_key BLOB PRIMARY KEY,
  owner TEXT NOT NULL,
  version INTEGER NOT NULL,
  removed_version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE roster_items (
  owner_key BLOB NOT NULL,
  contact_key BLOB NOT NULL,
  contact TEXT NOT NULL,
  state INTEGER NOT NULL,
  version INTEGER NOT NULL,
  details TEXT NOT NULL,
  request BLOB,
  PRIMARY KEY (owner_key, contact_key)
) STRICT, WITHOUT ROWID;
