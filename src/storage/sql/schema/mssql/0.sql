-- Versions of the schema that this database has, and how many statements of each were done.
IF OBJECT_ID(N'causeway_schema', N'U') IS NULL CREATE TABLE causeway_schema (
  version INT NOT NULL PRIMARY KEY,
  checksum CHAR(64) NOT NULL,
  done INT NOT NULL
);
