#!/bin/sh
# UserPromptSubmit of the orchestrator: its session and its receipts. `ng hook` under the name that older settings call.
set -u

self=$(readlink -f -- "$0") || exit 0
[ -r "${self%/*}/run_hook.sh" ] || exit 0
# shellcheck source=monitor/hooks/run_hook.sh
. "${self%/*}/run_hook.sh"
NEXUS_IS_ORCHESTRATOR=1
run_hook UserPromptSubmit
