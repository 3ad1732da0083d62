#!/bin/sh
# Types a text into a worker's window and says whether it arrived: `ng send` under its older name.
#
#   paste-followup.sh WINDOW [--message TEXT | --file FILE | < FILE] [--note TEXT] [--issue N] [--comment ID]
#                     [--src WORD] [--confirm-timeout SECONDS] [--no-enter]
#
# Exit codes: 0 delivered, queued or placed; 1 failed; 2 usage; 3 unconfirmed; 4 typed but not sent; 5 dead pane; 6 unknown
# pane; 7 held, nothing was typed.
self=$(readlink -f -- "$0") || exit 1
exec "$(dirname -- "$self")/ng" send --src paste-followup --no-wait "$@"
