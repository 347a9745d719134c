-- Rosters, by the SHA-256 of the bare JIDs of owner and contact. The bits of state are explained in
-- sql_roster_store.ts; details is a JSON array of the contact's name and groups.
CREATE TABLE rosters (
  owner_key BINARY(32) NOT NULL PRIMARY KEY,
  owner VARBINARY(2047) NOT NULL,
  version BIGINT NOT NULL,
  removed_version BIGINT NOT NULL
);

CREATE TABLE roster_items (
  owner_key BINARY(32) NOT NULL,
  contact_key BINARY(32) NOT NULL,
  contact VARBINARY(2047) NOT NULL,
  state INT NOT NULL,
  version BIGINT NOT NULL,
  details VARBINARY(MAX) NOT NULL,
  request VARBINARY(MAX),
  CONSTRAINT roster_items_key PRIMARY KEY (owner_key, contact_key)
);
