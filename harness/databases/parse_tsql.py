"""Parses statements of T-SQL with sqlglot and sqlfluff.

Reads a JSON array of texts, and prints a JSON array of what they do not parse.
"""

import json
import logging
import sys

import sqlfluff
import sqlglot

logging.getLogger("sqlglot").setLevel(logging.ERROR)


def failure_of(text):
    try:
        sqlglot.parse(text, read="tsql", error_level=sqlglot.ErrorLevel.RAISE)
    except sqlglot.errors.SqlglotError as error:
        return f"sqlglot: {error}"
    try:
        sqlfluff.parse(text + "\n", dialect="tsql")
    except sqlfluff.api.APIParsingError as error:
        return f"sqlfluff: {error}"
    return None


failures = []
for each in json.load(sys.stdin):
    failure = failure_of(each)
    if failure is not None:
        failures.append({"statement": each, "failure": failure})
json.dump(failures, sys.stdout)
