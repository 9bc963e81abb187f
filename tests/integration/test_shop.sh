#!/usr/bin/env bash
# The shop with and without the fence, on every database of this build; each run checks what it shows.
set -euo pipefail
run=$ASTER_SOURCE/examples/shop/run
"$run" --sqlite "$ASTER_BUILD"
"$run" --sqlite --no-fence "$ASTER_BUILD"
if [ -f "$ASTER_BUILD/src/libaster-postgres.a" ]; then
    "$run" "$ASTER_BUILD"
    "$run" --no-fence "$ASTER_BUILD"
fi
