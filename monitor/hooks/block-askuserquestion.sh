#!/bin/sh
# PreToolUse of the orchestrator, for questions: refuses them (code 2), since a dialog would swallow the watcher's pastes.
# Needs no built program: the refusal is the point.
set -u

cat >/dev/null
echo "Not asked: the watcher pastes its reports into this pane, and a question dialog would swallow them. Write the \
question as plain text in your reply and end the turn; an answer comes as a message, here or through the watcher." >&2
exit 2
