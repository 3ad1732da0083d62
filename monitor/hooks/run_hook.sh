# shellcheck shell=sh
# Sourced by the scripts that settings of the original tools call, after they set `self` to themselves, links resolved:
# one call of `ng hook` for the window in the environment.
#
#   run_hook EVENT [ARG...]    does not return
#
# Whatever goes wrong must not stop an agent's turn, so that is code 0 and a word on standard error. (A shell that can't
# source a file ends with 2, which would stop it: look before sourcing.)

# shellcheck disable=SC2154  # The caller's.
monitor=${self%/*}
monitor=${monitor%/hooks}

run_hook() {
    [ -r "$monitor/find_program.sh" ] || exit 0
    # shellcheck source=monitor/find_program.sh
    . "$monitor/find_program.sh"
    find_program ng || exit 0
    window=${NEXUS_WORKER_WINDOW:-}
    # A worker can have inherited the orchestrator's environment.
    if [ -z "$window" ] && [ "${NEXUS_IS_ORCHESTRATOR:-}" = 1 ]; then
        window=${NEXUS_ORCHESTRATOR_WINDOW:-orchestrator}
        set -- "$@" --target
    fi
    # Without a window this is no agent that was spawned with these settings.
    [ -n "$window" ] || exit 0
    # shellcheck disable=SC2154  # find_program sets it.
    exec "$program" hook "$@" --window "$window" --state "${NEXUS_STATE_DIR:-${NEXUS_ROOT:-$tree}/monitor/.state}"
}
