//! What each of Claude Code's rules matches, and what it must not.

use super::Fingerprint;

pub(crate) const TEXTS: &[Fingerprint] = &[
    ("claude-title-spinner", &["⠂ Fix the loader", "⠐ Claude Code"], &["✳ Claude Code", "Claude ⠂"]),
    (
        "claude-footer-interrupt",
        &["⏸ manual mode on · esc to interrupt", "esc to interrupt", "x · esc to int…", "x\n· esc to\ninterrupt"],
        &["Continuing automatically at 1:14am · Esc to cancel", "press esc to interrupt", "? for shortcuts"],
    ),
    (
        "claude-footer-jobs",
        &["⏸ manual mode on · 1 shell · ↓ to manage", "x · 3 background bashes"],
        &["! for shell mode", "1 shellfish", "demo | 3 shells", "2 monitors"],
    ),
    (
        "claude-footer-monitors",
        &["2 monitors", "x · 1 shell, 1 monitor · ↓ to manage"],
        &["1 monitored", "demo | 3 monitors", "1 shell"],
    ),
    (
        "claude-footer-background",
        &["1 background task · ↓ to view", "x · 2 local agents"],
        &["3 tasks", "send to background · 2 agents"],
    ),
    (
        "claude-footer-agent-row",
        &["◯ general-purpose  Survey part 1   8s · ↑ 1.3k tokens", "● main\n◯ general-purpose  Survey   5s"],
        &["● main", "✔ general-purpose  Survey part 1   8s · ↑ 1.3k tokens", "◯ effort"],
    ),
    (
        "claude-footer-limit",
        &["⚠ Usage limit reached · limit resets 1:14am", "⚠ Usage limit reached · limit resets Oct 5, 1am (UTC)"],
        &["Usage limit reached · limit resets 1:14am", "⚠ Usage limit near · limit resets 1am"],
    ),
    ("claude-footer-limit-bare", &["⚠ Usage limit reached · lim…"], &["⚠ Approaching usage limit"]),
    (
        "claude-footer-logged-out",
        &["? for shortcuts · ← for agents Not logged in · run /login"],
        &["Not logged in to the registry", "run /login"],
    ),
    ("claude-footer-vim-insert", &["-- INSERT -- ⏸ manual mode on"], &["mode -- INSERT --", "- INSERT -"]),
    ("claude-footer-vim-normal", &["-- NORMAL --"], &["NORMAL"]),
    (
        "claude-history-search",
        &["search prompts:", "search prompts: tests  ⏸ manual mode on", "search     ⏸ manual mode on\nprompts:"],
        &["search the prompts", "Search prompts:", "demo | search prompts:"],
    ),
    (
        "claude-help-without-cursor",
        &[
            "! for shell mode   esc esc to clear\n/ for commands   shift+tab",
            "! for shell modedouble tap\n/ for         clear",
        ],
        &["! for shell mode", "/ for commands"],
    ),
    (
        "claude-spinner",
        &[
            "· Honking…",
            "✢ Topsy-turvying… (9s · ↓ 30 tokens)",
            "✻ Rewrite the loader now… (esc to interrupt · ctrl+t to show todos)",
            "* Compacting conversation… (6s)",
            "✽ Fixing issue 12… (3s)",
        ],
        &[
            "✻ Brewed for 3s · done 9:32 PM",
            "✻ Worked for 3m 12s · done 10:13 PM · 1 sh…",
            "● Now I wait…",
            "✻ Waiting for 2 background agents to finish",
            "❯ ✻ Pondering… (12s)",
        ],
    ),
    (
        "claude-spinner-tokens",
        &["✶ Transmuting (5s · ↓ 54 tokens)", "✶ Reading 3 files (↑ 1.2k tokens)"],
        &["● spent ↓ 54 tokens", "✻ Brewed for 3s · 54 tokens"],
    ),
    (
        "claude-spinner-interrupt",
        &["✻ Step 3 (esc to interrupt)"],
        &["● It says (esc to interrupt)", "✻ esc to interrupt"],
    ),
    (
        "claude-throttled",
        &["✻ Waiting for capacity · esc to interrupt", "· Running at lower priority…"],
        &["● Waiting for capacity", "✻ Waiting for 2 agents"],
    ),
    (
        "claude-retrying",
        &["✻ 500 Internal server error · retrying in 1s · attempt 3/10", "✻ 500 Inter… · retrying in 1s"],
        &["● retrying in 1s · attempt 3/10", "✻ Retried 3 times"],
    ),
    (
        "claude-retrying-code",
        &["✻ 529 Overloaded · retrying in 1s"],
        &["✻ 250 files · retrying", "✻ Issue 529 Overloaded"],
    ),
    (
        "claude-waiting-for-agents",
        &["✻ Waiting for 2 background agents to finish", "· Waiting for 1 agent to finish"],
        &["● Waiting for 2 background agents", "✻ Waiting for an answer"],
    ),
    (
        "claude-survey",
        &["● How is Claude doing this session? (optional) 1: Bad 2: Fine 3: Good 0: Dismiss"],
        &["● How is Claude doing this session?", "❯ 1: Bad 2: Fine 3: Good 0: Dismiss"],
    ),
    ("claude-tail-spinner", &["· Honking…"], &["✻ Brewed for 3s", "⎿ Running…"]),
    (
        "claude-tail-finished",
        &["✻ Cooked for 0s", "✻ Worked for 3m 12s · done 10:13 PM · 1 shell still running", "✶ Zorbled for 1h 3m"],
        &["✻ Waiting for 2 agents", "● Cooked for 0s", "✻ Looking for 3 files"],
    ),
    (
        "claude-tail-retrying",
        &[
            "⎿ 500 {\"type\":\"error\"} Retrying in 1 second… (attempt 4/10)",
            "⎿ Retrying in 2s · attempt 4/10",
            "e \":\"Internal server error\"} Retrying in 1 second… (attempt 4/10)",
        ],
        &[
            "● 529 Overloaded · Retrying in 8 seconds… (attempt 4/10)",
            "> Retrying in 2s · attempt 4/10",
            "⎿ Retrying in a moment",
            "⎿ Retrying in 2s",
        ],
    ),
    ("claude-tail-retrying-code", &["⎿ 500 {…} Retrying in 1 second…"], &["⎿ 500 lines", "⎿ step 500 Retrying in"]),
    (
        "claude-shell-running",
        &["⎿ Running…", "⎿ Running… (1s)"],
        &["⎿ Running in the background", "● Running…", "⎿ Running… done"],
    ),
    ("claude-queued-item", &["⎿ Queued · ctrl+x ctrl+s to send now"], &["● Queued", "⎿ QueuedJob"]),
    (
        "claude-api-error",
        &[
            "● API Error: 500 Internal server error.",
            "⎿ API Error: 400 {\"type\":\"error\"}",
            "● API Error: Repeated 529 Overloaded errors.",
            "● Please run /login · API Error: 401 Invalid",
        ],
        &["● The API Error: 500 came back", "● Errors are printed as: API Error: 500", "❯ API Error: 500"],
    ),
    ("claude-api-error-other", &["⎿ API Error: Connection error."], &["● An API Error", "● API Errors are rare"]),
    (
        "claude-model-missing",
        &["● There's an issue with the selected model (x)."],
        &["● There's an issue with the model"],
    ),
    ("claude-too-large", &["⎿ Prompt is too long", "● Request too large (max 32MB)"], &["● The prompt is too long"]),
    (
        "claude-request-rejected",
        &["● API Error: Request rejected (429) · This request would exceed your rate limit."],
        &["● API Error: Request rejected (403)", "● Request rejected (429)"],
    ),
    (
        "claude-credit",
        &["⎿ Credit balance too low · Add funds: x", "● Credit balance is too low"],
        &["● Your credit balance is too low"],
    ),
    (
        "claude-limit",
        &[
            "⎿ You've hit your 5-hour limit · resets 1:08am (UTC)",
            "⎿ You've hit your limit · resets 3am",
            "⎿ You’ve reached your weekly Opus limit ∙ resets Oct 5, 1am (America/Los_Angeles)",
            "● API Error: Request rejected (429) · You've hit your limit · resets 3am",
            "⎿ You've hit your session limit",
        ],
        &[
            "● The notice reads: You've hit your limit · resets 3am",
            "❯ You've hit your limit · resets 3am",
            "● You've hit your limit · resets 3am",
            "● You've hit your head",
        ],
    ),
    (
        "claude-limit-reached",
        &[
            "⎿ 5-hour limit reached ∙ resets 3am",
            "⎿ Spending cap reached resets 3:12pm /upgrade to increase your usage limit.",
            "⎿ Opus weekly limit reached ∙ resets Oct 6, 3am",
        ],
        &[
            "● The 5-hour limit reached ∙ resets 3am",
            "⎿ limit reached",
            "⎿ The cap reached the top",
            "⎿ 5-hour limit reached",
        ],
    ),
    ("claude-extra-usage", &["⎿ You're out of extra usage · resets 3pm"], &["● You're out of luck"]),
    (
        "claude-limit-continues",
        &["● Usage limit reached · set to continue automatically at 1:08am", "● Automatic continue cancelled · x"],
        &["● Usage limit reached the top", "⎿ Usage limit reached ·"],
    ),
    (
        "claude-limit-command",
        &["❯ /rate-limit-options", "> /rate-limit-options"],
        &["❯ see /rate-limit-options", "● /rate-limit-options"],
    ),
    (
        "claude-signed-out",
        &[
            "⎿ Invalid API key · Fix external API key",
            "⎿ Not logged in · Please run /login",
            "● Please run /login · API Error: 401 x",
        ],
        &["● Please run /login first", "● Invalid API keys are refused", "❯ Not logged in · x"],
    ),
    (
        "claude-interrupted",
        &["⎿ Interrupted · What should Claude do instead?"],
        &["● Interrupted", "⎿ InterruptedError"],
    ),
    (
        "claude-declined",
        &["● User declined to answer questions", "⎿ Declined to answer Claude's questions"],
        &["● I declined to answer"],
    ),
    (
        "claude-turn-without-end",
        &[
            "● the parser reads\nmain 12%\n⏸ manual mode on · ← for agents",
            "❯ go\n⏵⏵ bypass permissions on (shift+tab to cycle)",
            "● x\n-- INSERT -- ⏸ manual mode on",
        ],
        &[
            "● the parser reads\n⏸ manual mode on · ? for shortcuts",
            "● the parser reads\n? for shortcuts",
            "✻ Cooked for 3s\n⏸ manual mode on",
            "⎿ output\n⏸ manual mode on",
        ],
    ),
    ("claude-queued", &["Press up to edit queued messages"], &["To edit: Press up to edit queued messages"]),
    (
        "claude-viewer-busy",
        &["x\nworking · Showing detailed transcript…"],
        &["Showing detailed transcript", "● working · Showing detailed"],
    ),
    ("claude-viewer", &["Showing detailed transcript · ctrl+o to toggle"], &["● Showing detailed transcript"]),
    ("claude-login-code", &["Paste code here if prompted >"], &["Paste the code here"]),
    ("claude-help-page", &["For more help: https://x"], &["For more help ask"]),
    ("claude-api-key", &["Do you want to use this API key?"], &["Do you want to use this key?"]),
    (
        "claude-trust",
        &["No, exit\nYes, I trust this folder", "1. Yes, I trust this folder"],
        &["Yes, I trust this folder and more"],
    ),
    ("claude-trust-question", &["Do you trust the files in\nthis folder?"], &["Do you trust the files?"]),
    ("claude-bypass", &["1. No, exit\n2. Yes, I accept"], &["Yes, I accept edits"]),
    ("claude-limit-menu", &["1. Stop and wait for limit to reset\n2. Upgrade your plan"], &["1. Stop and wait for me"]),
    ("claude-question-row", &["4. Type something.", "5. [ ] Type something"], &["4. Type something else"]),
    ("claude-question-chat", &["4. use both\n5. Chat about this"], &["5. Chat about this and that"]),
    ("claude-question-review", &["1. Submit answers\n2. Cancel"], &["1. Submit"]),
    (
        "claude-plan",
        &["Claude has written up a plan and is ready to execute. Would you like to proceed?"],
        &["Would you like to know?"],
    ),
    (
        "claude-permission",
        &[
            "Do you want to proceed?",
            "Do you want to make this edit to main.py?",
            "Do you want to allow Claude to fetch this content?",
        ],
        &["Would you like to proceed?", "What do you want to do?"],
    ),
    (
        "claude-permission-options",
        &["1. Yes\n2. Yes, and don't ask again for: python3 *\n3. No"],
        &["1. Yes\n2. No", "1. Yes, and manually approve it"],
    ),
    ("claude-question-tab", &["☐ Backend\nWhich?", "← ☒ Checks  ✔ Submit  →"], &["- ☐ item", "a ☐ b"]),
    ("claude-login", &["Select login method:", "How do you want to sign in?"], &["Select a method:"]),
    (
        "claude-menu",
        &[
            "←/→ to switch · Esc to close",
            "Enter/Space to change · Esc to cancel",
            "↑/↓ to navigate",
            "←/→ tab switch · ↓ return · Esc cancel",
        ],
        &["Esc to cancel", "Enter your name", "Esc cancels it", "· Esc cancellation"],
    ),
];
