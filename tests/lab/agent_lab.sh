#!/usr/bin/env bash
# agent_lab.sh - run real coding-agent TUIs against the mock backend, in a
# private tmux server, with a throw-away HOME.  For end-to-end tests.
#
#   agent_lab.sh install DIR AGENT[@VERSION]...   install clients under DIR (npm / venv)
#   agent_lab.sh mock-start DIR [MOCK-ARGS...]    start mock_llm.py, note port and pid in DIR
#   agent_lab.sh mock-stop  DIR
#   agent_lab.sh mode DIR [DIRECTIVE]             override every reply ("overlimit"; empty clears)
#   agent_lab.sh start DIR AGENT[@VERSION] NAME [--cols N] [--rows N] [--cwd PATH]
#                [--direct] [--untrusted] [--no-key] [--oauth] [--onboarding]
#                [--settings JSON] [--env K=V]... [-- CLIENT-ARGS...]
#                                                 new tmux session NAME running the client
#   agent_lab.sh send  DIR NAME TEXT              type TEXT, wait, press Enter
#   agent_lab.sh paste DIR NAME FILE              bracketed paste of FILE ("-" = stdin), no Enter
#   agent_lab.sh key   DIR NAME KEY...            tmux key names (Enter, Escape, C-c ...)
#   agent_lab.sh wait  DIR NAME REGEX [SECONDS]   until the screen matches (exit 1 on timeout)
#   agent_lab.sh show  DIR NAME [-e]              print the screen (-e: with escapes)
#   agent_lab.sh save  DIR NAME STEM STATE INPUT TURN OVERLAY [NOTES]
#                                                 a capture for tests/captures: STEM--COLSxROWS.{txt,ansi,json}, where
#                                                 STEM is FOLDER/AGENT-VERSION/WHAT and TURN true or false; the words of
#                                                 the label are in docs/adding-an-agent.md
#   agent_lab.sh kill  DIR NAME                   end one session
#   agent_lab.sh stop  DIR                        end the tmux server and the mock of DIR, and wait
#
# AGENT is claude, codex, gemini, qwen, opencode or aider.  Everything lives under
# DIR: clients in DIR/agents, homes in DIR/home-NAME (with the session's
# TMPDIR), the tmux socket in DIR/tmux.  Nothing outside DIR is written, except
# in the session's --cwd by the agent itself (default: DIR/work, a small git
# repository), the package manager's own cache, and small files in /tmp where a
# client does not heed TMPDIR or a DIR is too long for a socket name.
# Only processes recorded in DIR, and their children, are ever signalled; what an
# agent's command has detached from its session is not among them.
#
# --settings JSON replaces top-level keys of the client's settings file (claude,
# gemini, qwen, opencode).  Claude Code starts in its manual permission mode unless
# the settings or CLIENT-ARGS choose another; a defaultMode in the settings makes
# 2.1.332 open with an offer of auto mode.
# Ready for a first prompt: '\? for shortcuts' (claude, codex, gemini; the last
# two show it while busy too), 'Type your message' (qwen), 'Ask anything' (opencode), '^> ' (aider).
#
# Example:
#   lab=tests/lab/agent_lab.sh; d=$(mktemp -d)
#   $lab install $d claude@2.1.332 && $lab mock-start $d
#   $lab start $d claude@2.1.332 a1 --cols 120 --rows 40
#   $lab wait $d a1 '\? for shortcuts' 30
#   $lab send $d a1 'SCENARIO:bash rm -rf build'
#   $lab wait $d a1 'Do you want to proceed' 20 && $lab show $d a1
#   $lab stop $d
set -euo pipefail
export LANG=C.UTF-8 LC_ALL=C.UTF-8

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() { echo "agent_lab: $*" >&2; exit 2; }
usage() { sed -n '2,/^set -euo/p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//'; exit "${1:-0}"; }

[ $# -ge 1 ] || usage 2
cmd=$1; shift
case $cmd in -h|--help|help) usage 0 ;; esac
[ $# -ge 1 ] || usage 2
case $cmd in
  install) [ $# -ge 2 ] || usage 2; mkdir -p "$1" ;;
  mock-start) mkdir -p "$1" ;;
esac
[ -d "$1" ] || die "no directory $1: run install first"
dir=$(cd "$1" && pwd); shift

# A socket path has a length limit of about 100 bytes: fall back to a short one.
sock=$dir/tmux
if [ "$(printf %s "$sock" | wc -c)" -gt 95 ]; then sock=/tmp/agent-lab-$(printf %s "$dir" | cksum | cut -d' ' -f1); fi
t() { tmux -u -S "$sock" -f /dev/null "$@"; }

package_of() {
  case $1 in
    claude) echo @anthropic-ai/claude-code ;;
    codex) echo @openai/codex ;;
    gemini) echo @google/gemini-cli ;;
    qwen) echo @qwen-code/qwen-code ;;
    opencode) echo opencode-ai ;;
    aider) echo aider-chat ;;
    *) die "unknown agent $1" ;;
  esac
}
spec_agent() { echo "${1%%@*}"; }
spec_version() { case $1 in *@*) echo "${1#*@}" ;; *) echo latest ;; esac; }
prefix_of() { echo "$dir/agents/$(spec_agent "$1")-$(spec_version "$1")"; }

do_install() {
  local spec agent version prefix package
  for spec in "$@"; do
    agent=$(spec_agent "$spec"); version=$(spec_version "$spec"); prefix=$(prefix_of "$spec")
    package=$(package_of "$agent")
    if [ -e "$prefix/.installed" ]; then continue; fi
    mkdir -p "$prefix"
    if [ "$agent" = aider ]; then
      python3 -m venv "$prefix"
      if [ "$version" = latest ]; then "$prefix/bin/pip" install -q "$package"
      else "$prefix/bin/pip" install -q "$package==$version"; fi
    else
      npm install --prefix "$prefix" --no-audit --no-fund --loglevel=error "$package@$version"
    fi
    touch "$prefix/.installed"
  done
}

# The processes below those given, and those themselves.
tree_of() {
  ps -eo pid=,ppid= | awk -v roots="$*" '
    { pid[NR] = $1; up[$1] = $2 }
    END { n = split(roots, r, " "); for (i = 1; i <= n; i++) is[r[i]] = 1
          for (i = 1; i <= NR; i++) for (p = pid[i]; p > 1; p = up[p]) if (p in is) { print pid[i]; break } }'
}
# Those of the given processes that have not ended.
running() { ps -eo pid=,stat= | awk -v pids="$*" 'BEGIN { split(pids, a, " "); for (i in a) is[a[i]] } $1 in is && $2 !~ /^Z/ { print $1 }'; }

# End processes: TERM, and KILL for those still there after five seconds.
finish() {
  local -a left
  kill "$@" 2>/dev/null || true
  gone 50 "$@" || { mapfile -t left < <(running "$@"); kill -KILL "${left[@]}" 2>/dev/null || true; }
}
# Wait up to $1 tenths of a second until the other arguments have ended.
gone() {
  local tenths=$1; shift
  while [ -n "$(running "$@")" ]; do
    [ $((tenths--)) -gt 0 ] || return 1
    sleep 0.1
  done
}

# Whether the recorded process is the mock of DIR and not a later one with its number.
mock_alive() {
  [ -s "$dir/mock.pid" ] && ps -ww -o args= -p "$(cat "$dir/mock.pid")" 2>/dev/null | grep -qF -- "--port-file $dir/mock.port"
}
mock_port() {
  mock_alive || die "no mock backend: run mock-start first"
  cat "$dir/mock.port"
}

do_mock_start() {
  if mock_alive; then mock_port; return; fi
  rm -f "$dir/mock.port"
  setsid nohup python3 "$here/mock_llm.py" --port 0 --port-file "$dir/mock.port" \
    --log "$dir/mock.jsonl" "$@" >"$dir/mock.out" 2>&1 &
  echo $! >"$dir/mock.pid"
  for _ in $(seq 50); do
    sleep 0.1
    if [ -s "$dir/mock.port" ]; then mock_port; return; fi
    kill -0 $! 2>/dev/null || break
  done
  cat "$dir/mock.out" >&2
  do_mock_stop
  die "the mock backend did not start"
}

do_mock_stop() {
  if mock_alive; then finish "$(cat "$dir/mock.pid")"; fi
  rm -f "$dir/mock.pid" "$dir/mock.port"
}

do_mode() {
  python3 - "$(mock_port)" "${1:-}" <<'EOF'
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
opener.open(urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/__mode", data=sys.argv[2].encode(), method="POST"))
EOF
}

# Write the client's configuration into HOME ($1) for working directory $2.
seed_home() {
  python3 - "$@" <<'EOF'
import json, os, sys, time
home, cwd, agent, port, key, trusted, oauth, onboarding, with_key, settings = sys.argv[1:11]
yes = lambda s: s == "1"

def put(path, text):
    path = os.path.join(home, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)

base = f"http://127.0.0.1:{port}"
extra = json.loads(settings or "{}")
if agent == "claude":
    state = {"numStartups": 5}
    if not yes(onboarding):
        state.update(hasCompletedOnboarding=True, theme="dark", lastOnboardingVersion="9.9.9")
    if yes(trusted):
        state["projects"] = {cwd: {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True,
                                   "projectOnboardingSeenCount": 9}}
    if yes(with_key):
        state["customApiKeyResponses"] = {"approved": [key[-20:]], "rejected": []}
    put(".claude.json", json.dumps(state))
    if extra:
        put(".claude/settings.json", json.dumps(extra))
    if yes(oauth):
        put(".claude/.credentials.json", json.dumps({"claudeAiOauth": {
            "accessToken": "sk-ant-oat01-demo", "refreshToken": "sk-ant-ort01-demo",
            "expiresAt": int(time.time() * 1000) + 10 ** 10, "scopes": ["user:inference", "user:profile"],
            "subscriptionType": "max"}}))
elif agent == "codex":
    text = f'''model = "mock-1"
model_provider = "mock"
check_for_update_on_startup = false

[model_providers.mock]
name = "mock"
base_url = "{base}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 1
stream_max_retries = 1

[analytics]
enabled = false
'''
    if yes(trusted):
        text += f'\n[projects.{json.dumps(cwd, ensure_ascii=False)}]\ntrust_level = "trusted"\n'
    put(".codex/config.toml", text if not yes(onboarding) else "")
elif agent == "gemini":
    conf = {"general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False}, "security": {"folderTrust": {"enabled": True}}}
    if not yes(onboarding):
        conf["security"]["auth"] = {"selectedType": "gemini-api-key"}
    conf.update(extra)
    put(".gemini/settings.json", json.dumps(conf))
    if yes(trusted):
        put(".gemini/trustedFolders.json", json.dumps({cwd: "TRUST_FOLDER"}))
elif agent == "qwen":
    conf = {"general": {"disableAutoUpdate": True}, "telemetry": {"enabled": False},
            "security": {"folderTrust": {"enabled": not yes(trusted)}}}
    if not yes(onboarding):
        conf["security"]["auth"] = {"selectedType": "openai"}
    conf.update(extra)
    put(".qwen/settings.json", json.dumps(conf))
elif agent == "opencode":
    conf = {"autoupdate": False, "share": "disabled", "model": "mock/mock-1", "small_model": "mock/mock-1",
            "permission": {"edit": "ask", "bash": "ask", "webfetch": "ask"},
            "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "Mock",
                                  "options": {"baseURL": base + "/v1", "apiKey": "dummy"},
                                  "models": {"mock-1": {"name": "Mock 1", "tool_call": True,
                                                        "limit": {"context": 200000, "output": 8000}}}}}}
    conf.update(extra)
    put(".config/opencode/opencode.json", json.dumps(conf))
EOF
}

do_start() {
  [ $# -ge 2 ] || usage 2
  local spec=$1 name=$2; shift 2
  case $name in ''|lab-keep|*[!A-Za-z0-9_-]*) die "bad session name '$name'" ;; esac
  local agent prefix home cols=120 rows=40 cwd='' direct=0 trusted=1 with_key=1 oauth=0 onboarding=0 settings='{}'
  local -a extra_env=() args=()
  while [ $# -gt 0 ]; do
    case $1 in
      --cols) cols=$2; shift 2 ;;
      --rows) rows=$2; shift 2 ;;
      --cwd) cwd=$2; shift 2 ;;
      --direct) direct=1; shift ;;            # the client is the pane's command (no shell under it)
      --untrusted) trusted=0; shift ;;        # leave the workspace-trust dialog to appear
      --no-key) with_key=0; shift ;;          # no API key at all
      --oauth) oauth=1; with_key=0; shift ;;  # Claude Code: a dummy subscription token
      --onboarding) onboarding=1; shift ;;    # leave first-run screens to appear
      --settings) settings=$2; shift 2 ;;
      --env) extra_env+=("$2"); shift 2 ;;
      --) shift; args=("$@"); break ;;
      *) die "unknown option $1" ;;
    esac
  done
  agent=$(spec_agent "$spec"); prefix=$(prefix_of "$spec"); home=$dir/home-$name
  local port bin key=sk-ant-demo-0000000000000000000000000000000000000000
  port=$(mock_port)
  bin=$prefix/node_modules/.bin; [ "$agent" = aider ] && bin=$prefix/bin
  [ -x "$bin/$agent" ] || die "$spec is not installed: run install first"
  end_session "$name"
  rm -rf "$home"; mkdir -p "$home/tmp"
  if [ -z "$cwd" ]; then
    cwd=$dir/work
    if [ ! -d "$cwd/.git" ]; then
      mkdir -p "$cwd"
      printf 'def greet(name):\n    return "hello " + name\n\n\nprint(greet("world"))\n' >"$cwd/main.py"
      printf '# demo\n' >"$cwd/README.md"
      # No GIT_DIR of a hook that runs us, and no personal configuration.
      local -a git=(env -i "PATH=$PATH" "HOME=$home" git -C "$cwd" -c user.name=demo -c user.email=demo@example.com)
      "${git[@]}" init -q
      "${git[@]}" add -A
      "${git[@]}" commit -qm 'Initial commit'
    fi
  fi
  cwd=$(cd "$cwd" && pwd)
  seed_home "$home" "$cwd" "$agent" "$port" "$key" "$trusted" "$oauth" "$onboarding" "$with_key" "$settings"

  local -a env=(
    "HOME=$home" "TMPDIR=$home/tmp" "PATH=$bin:$(dirname "$(command -v node)"):/usr/local/bin:/usr/bin:/bin"
    LANG=C.UTF-8 LC_ALL=C.UTF-8 SHELL=/bin/bash USER=demo LOGNAME=demo "PS1=demo\$ "
    "XDG_CONFIG_HOME=$home/.config" "XDG_DATA_HOME=$home/.local/share"
    "XDG_CACHE_HOME=$home/.cache" "XDG_STATE_HOME=$home/.local/state"
    DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 OPENCODE_DISABLE_AUTOUPDATE=1
    OPENCODE_DISABLE_MODELS_FETCH=1 GEMINI_TELEMETRY_ENABLED=false NO_BROWSER=1
  )
  case $agent in
    claude)
      env+=("ANTHROPIC_BASE_URL=http://127.0.0.1:$port" "CLAUDE_CODE_TMPDIR=$home/tmp")
      case "$settings ${args[*]}" in
        *defaultMode*|*--permission-mode*|*--dangerously-skip-permissions*) ;;
        *) args=(--permission-mode default "${args[@]}") ;;   # else auto mode answers its own prompts
      esac
      if [ $with_key = 1 ]; then env+=("ANTHROPIC_API_KEY=$key"); fi ;;
    codex)
      env+=("CODEX_HOME=$home/.codex")
      if [ $with_key = 1 ]; then env+=(MOCK_KEY=dummy); fi
      # Else a background server outlives the session; older versions have none and don't know the flag.
      if "$bin/codex" --help 2>&1 | grep -q -- --no-daemon; then args=(--no-daemon "${args[@]}"); fi ;;
    gemini)
      env+=("GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:$port")
      if [ $with_key = 1 ]; then env+=(GEMINI_API_KEY=dummy); fi ;;
    qwen)
      env+=("OPENAI_BASE_URL=http://127.0.0.1:$port/v1" OPENAI_MODEL=mock-1)
      if [ $with_key = 1 ]; then env+=(OPENAI_API_KEY=dummy); fi ;;
    aider)
      env+=("OPENAI_API_BASE=http://127.0.0.1:$port/v1" OPENAI_API_KEY=dummy AIDER_ANALYTICS=false)
      args=(--model openai/mock-1 --no-check-update --no-show-model-warnings --no-show-release-notes "${args[@]}") ;;
  esac
  env+=("${extra_env[@]}")

  # TERM and TMUX must come from the pane itself, so they are expanded there.
  local line run
  # shellcheck disable=SC2016
  run='exec env -i TERM="$TERM" TMUX="$TMUX" TMUX_PANE="$TMUX_PANE" '"$(printf '%q ' "${env[@]}")"
  line=$(printf '%q ' "$agent" "${args[@]}")
  t has-session -t =lab-keep 2>/dev/null || t new-session -d -s lab-keep -x 80 -y 24 'sleep 2147483'
  t set-option -g default-terminal tmux-256color
  if [ $direct = 1 ]; then
    t new-session -d -s "$name" -x "$cols" -y "$rows" -c "$cwd" bash -c "$run$line" \; \
      set-option -t "=$name:" remain-on-exit on
  else
    t new-session -d -s "$name" -x "$cols" -y "$rows" -c "$cwd" bash -c "${run}bash --norc --noprofile -i"
  fi
  t set-option -t "=$name:" status off
  t resize-window -t "=$name:" -x "$cols" -y "$rows"
  if [ $direct = 0 ]; then
    sleep 0.4
    t send-keys -t "=$name:" -l -- "$line"
    t send-keys -t "=$name:" Enter
  fi
}

do_send() {
  [ $# -eq 2 ] || usage 2
  local name=$1 text=$2
  case $text in *\;) text=${text%;}'\;' ;; esac      # tmux takes a final ';' for a separator
  t send-keys -t "=$name:" -l -- "$text"
  sleep "${AGENT_LAB_SEND_DELAY:-0.6}"               # an Enter right behind fast typing may count as a line break
  t send-keys -t "=$name:" Enter
}

do_paste() {
  [ $# -ge 1 ] || usage 2
  t load-buffer -b "lab-$1" "${2:--}"
  t paste-buffer -p -d -b "lab-$1" -t "=$1:"
}

do_wait() {
  [ $# -ge 2 ] || usage 2
  local name=$1 regex=$2 end=$((SECONDS + ${3:-30})) screen
  while [ $SECONDS -le $end ]; do
    screen=$(t capture-pane -p -t "=$name:") || die "no session $name"
    if grep -qE -- "$regex" <<<"$screen"; then return 0; fi
    sleep 0.2
  done
  echo "agent_lab: timed out waiting for /$regex/ in $name" >&2
  echo "$screen" >&2
  return 1
}

do_save() {
  [ $# -ge 6 ] || usage 2
  local name=$1 stem=$2 size; shift 2
  size=$(t display-message -p -t "=$name:" '#{pane_width}x#{pane_height}')
  mkdir -p "$(dirname "$stem")"
  # Both in one round of the server, so that they show the same frame.
  t capture-pane -p -t "=$name:" \; display-message -p -t "=$name:" $'\f' \; capture-pane -p -e -t "=$name:" \; \
    display-message -p -t "=$name:" $'\f#{pane_title}\f#{pane_dead}\f#{pane_in_mode}' |
    python3 -c '
import json, os, sys
stem, size, state, input_row, turn, overlay, notes = sys.argv[1:8]
text, ansi, title, dead, in_mode = sys.stdin.buffer.read().decode().split("\f")
agent, _, version = os.path.basename(os.path.dirname(stem)).rpartition("-")
cols, rows = map(int, size.split("x"))
label = {"agent": agent, "version": version, "cols": cols, "rows": rows, "state": state, "input_row": input_row,
         "turn_running": json.loads(turn), "overlay": overlay, "notes": notes,
         "tmux": {"pane_title": title, "pane_dead": dead, "pane_in_mode": in_mode.strip()}}
for end, body in ("txt", text), ("ansi", ansi.removeprefix("\n")), ("json", json.dumps(label, indent=1, ensure_ascii=False) + "\n"):
    with open(f"{stem}--{size}.{end}", "w") as f:
        f.write(body)
' "$stem" "$size" "$1" "$2" "$3" "$4" "${5:-}"
}

# End one session and what runs in it, and wait: a client goes on writing to its home for a while.
end_session() {
  local -a tree
  t has-session -t "=$1" 2>/dev/null || return 0
  mapfile -t tree < <(t list-panes -s -t "=$1" -F '#{pane_pid}')
  mapfile -t tree < <(tree_of "${tree[@]}")
  t kill-session -t "=$1"
  gone 50 "${tree[@]}" || finish "${tree[@]}"
}

do_stop() {
  local server
  if server=$(t display-message -p '#{pid}' 2>/dev/null); then
    local -a tree
    mapfile -t tree < <(tree_of "$server")
    t kill-server
    gone 50 "${tree[@]}" || finish "${tree[@]}"
  fi
  rm -f "$sock"
  do_mock_stop
}

case $cmd in
  install) do_install "$@" ;;
  mock-start) do_mock_start "$@" ;;
  mock-stop) do_mock_stop ;;
  mode) do_mode "$@" ;;
  start) do_start "$@" ;;
  send) do_send "$@" ;;
  paste) do_paste "$@" ;;
  key) [ $# -ge 2 ] || usage 2; name=$1; shift; t send-keys -t "=$name:" "$@" ;;
  wait) do_wait "$@" ;;
  show) [ $# -ge 1 ] || usage 2; t capture-pane -p ${2:+"$2"} -t "=$1:" ;;
  save) do_save "$@" ;;
  kill) [ $# -eq 1 ] || usage 2; end_session "$1" ;;
  stop) do_stop ;;
  *) usage 2 ;;
esac
