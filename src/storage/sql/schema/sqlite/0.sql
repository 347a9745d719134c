-- Versions of the schema that this database has, and how many statements of each were done.
CREATE TABLE IF NOT EXISTS causeway_schema (
  version INTEGER PRIMARY KEY,
  checksum TEXT NOT NULL,
  done INTEGER NOT NULL
) STRICT;
