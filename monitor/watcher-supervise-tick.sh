#!/bin/sh
# One look at the watcher by whoever supervises it: `ng watcher supervise`. Code 0: it runs; code 1: it does not, and what
# is printed says what to do.
set -u

self=$(readlink -f -- "$0") || exit 1
exec "$(dirname -- "$self")/ng" watcher supervise "$@"
