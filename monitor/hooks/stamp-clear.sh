#!/bin/sh
# Stop: removes one stamp of the window, over-limit or turn-failure. `ng hook` under the name that older settings call.
set -u

self=$(readlink -f -- "$0") || exit 0
[ -r "${self%/*}/run_hook.sh" ] || exit 0
# shellcheck source=monitor/hooks/run_hook.sh
. "${self%/*}/run_hook.sh"
case ${1:-} in
over-limit | turn-failure) run_hook Stop --only "$1" ;;
*) echo "stamp-clear.sh: which stamp? over-limit or turn-failure" >&2 ;;
esac
