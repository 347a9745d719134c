"""Says which documents expat and libxml2 cannot read, for reference_parsers.ts.

Reads batches on standard input: a count, then so many documents, each behind its length; numbers are
32 bits, big-endian. Answers each batch with one line: a JSON list of [index, reason].
"""

import json
import struct
import sys
from xml.parsers import expat

try:
    from lxml import etree
except ImportError:
    sys.exit("Cannot compare with libxml2: python3-lxml is missing, see apt-get install python3-lxml")

# What callers of expat divide namespace and name by: ElementTree, xml.sax, others. It refuses a
# namespace in which that stands.
SEPARATORS = "} |"
LIBXML2 = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)


def refusal(document):
    for separator in SEPARATORS:
        parser = expat.ParserCreate("UTF-8", separator)
        try:
            parser.Parse(document, True)
        except expat.ExpatError as error:
            return f"expat, with names divided by {separator!r}: {error}"
    try:
        etree.fromstring(document, LIBXML2)
    except etree.XMLSyntaxError as error:
        return f"libxml2: {error}"
    return None


def read(count):
    data = sys.stdin.buffer.read(count)
    if len(data) < count:
        sys.exit(0)
    return data


def number():
    return struct.unpack(">I", read(4))[0]


print("ready", flush=True)
while True:
    documents = [read(number()) for _ in range(number())]
    reasons = ((index, refusal(document)) for index, document in enumerate(documents))
    print(json.dumps([each for each in reasons if each[1] is not None]), flush=True)
