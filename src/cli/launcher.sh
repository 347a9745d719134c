#!/bin/sh
# What `deno task compile` leaves as dist/causeway where it cannot put Deno and the program into one
# file, which takes a download from Deno's own site: runs the bundle that lies beside it.
exec deno run --no-prompt --allow-net --allow-read --allow-write --allow-env \
  --allow-sys=hostname "$(dirname "$(readlink -f "$0")")/causeway.js" "$@"
