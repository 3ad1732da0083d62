#!/bin/sh
# `ng pane-state` under its older name. Exit codes: 0 classified, 2 could not look, 3 no such window, 64 usage.
set -u

self=$(readlink -f -- "$0") || exit 2
monitor=${self%/*}
# shellcheck source=monitor/find_program.sh
. "$monitor/find_program.sh"
find_program ng || exit 2

: "${NEXUS_ROOT:=$tree}"
export NEXUS_ROOT
exec "$program" pane-state "$@"
