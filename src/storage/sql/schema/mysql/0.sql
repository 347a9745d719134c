-- Versions of the schema that this database has, and how many statements of each were done.
CREATE TABLE IF NOT EXISTS causeway_schema (
  version INTEGER NOT NULL PRIMARY KEY,
  checksum VARCHAR(64) CHARACTER SET ascii NOT NULL,
  done INTEGER NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
