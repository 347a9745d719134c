-- Lowest version of the schema that a program must know to use this database. Nodes of two releases
-- share it during an upgrade. A version that breaks the programs before it raises this.
CREATE TABLE causeway_schema_floor (
  lowest INT NOT NULL PRIMARY KEY
);

INSERT INTO causeway_schema_floor (lowest) VALUES (11);
