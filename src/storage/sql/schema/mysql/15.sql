-- Every statement may run twice: a crash may come between a statement and the note that it was done.
-- Words of archived messages, of hosts that search their archives. A row is that of a message at the
-- same place of archive_messages. Each set of words has one that names the archive. Rows without a
-- message are left by programs of earlier versions, which remove messages alone. Servers before MySQL
-- 5.6.4 and MariaDB 10.0.5 have no such index.
CREATE TABLE IF NOT EXISTS archive_texts (
  account_key BINARY(32) NOT NULL,
  position BIGINT NOT NULL,
  words MEDIUMTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (account_key, position)
  /*!50604 , FULLTEXT INDEX archive_texts_by_words (words) */
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;
