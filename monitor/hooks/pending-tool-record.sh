#!/bin/sh
# PreToolUse: the tool that is about to run; with --clear PostToolUse: it has run. `ng hook` under an older name.
set -u

self=$(readlink -f -- "$0") || exit 0
[ -r "${self%/*}/run_hook.sh" ] || exit 0
# shellcheck source=monitor/hooks/run_hook.sh
. "${self%/*}/run_hook.sh"
case ${1:-} in
--clear) run_hook PostToolUse --only pending-tool ;;
*) run_hook PreToolUse --only pending-tool --only heartbeat ;;
esac
