-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- Lowest version of the schema that a program must know to use this database. Nodes of two releases
-- share it during an upgrade. A version that breaks the programs before it raises this.
CREATE TABLE IF NOT EXISTS causeway_schema_floor (
  lowest INTEGER NOT NULL PRIMARY KEY
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

REPLACE INTO causeway_schema_floor (lowest) VALUES (11);
