#!/bin/sh
# What an agent does: busy, notify, user_prompt, turn_end or permission_prompt. `ng hook` under the name that older settings call.
set -u

self=$(readlink -f -- "$0") || exit 0
[ -r "${self%/*}/hooks/run_hook.sh" ] || exit 0
# shellcheck source=monitor/hooks/run_hook.sh
. "${self%/*}/hooks/run_hook.sh"
case ${1:-} in
# What else a notification means has a script of its own in those settings.
notify) run_hook Notification --only heartbeat ;;
busy) run_hook PostToolUse --only heartbeat --only decision ;;
user_prompt | turn_end | permission_prompt) run_hook "$1" ;;
*) echo "worker-heartbeat.sh: busy, notify, user_prompt, turn_end or permission_prompt?" >&2 ;;
esac
