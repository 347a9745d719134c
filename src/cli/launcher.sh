#!/bin/sh
# What `deno task compile` leaves as dist/causeway where it cannot put Deno and the program into one
# file, which takes a download from Deno's own site: runs the bundle that lies beside it.
#
# It reads and writes where a node has its files. Paths elsewhere, divided by commas, are named in
# CAUSEWAY_READ and CAUSEWAY_WRITE; a binary takes them only when it is compiled.
exec deno run --no-prompt --v8-flags=--min-semi-space-size=16,--max-semi-space-size=16 \
  --no-config --cached-only --allow-net \
  "--allow-read=/etc/causeway,/var/lib/causeway${CAUSEWAY_READ:+,$CAUSEWAY_READ}" \
  "--allow-write=/var/lib/causeway${CAUSEWAY_WRITE:+,$CAUSEWAY_WRITE}" \
  --allow-env --allow-sys=hostname "$(dirname "$(readlink -f "$0")")/causeway.js" "$@"
