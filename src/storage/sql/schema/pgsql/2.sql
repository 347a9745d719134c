-- Rosters, by the SHA-256 of the bare JIDs of owner and contact. The bits of state are explained in
-- sql_roster_store.ts; details is a JSON array of the contact's name and groups.
CREATE TABLE rosters (
  owner_key BYTEA NOT NULL PRIMARY KEY,
  owner TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  removed_version BIGINT NOT NULL
);

CREATE TABLE roster_items (
  owner_key BYTEA NOT NULL,
  contact_key BYTEA NOT NULL,
  contact TEXT COLLATE "C" NOT NULL,
  state INTEGER NOT NULL,
  version BIGINT NOT NULL,
  details TEXT COLLATE "C" NOT NULL,
  request BYTEA,
  PRIMARY KEY (owner_key, contact_key)
);
