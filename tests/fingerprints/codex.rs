//! What each of Codex's rules matches, and what it must not.

use super::Fingerprint;

pub(crate) const TEXTS: &[Fingerprint] = &[
    (
        "codex-title-spinner",
        &["⠇ Demo session | demo", "⠋ demo"],
        &["Demo session | demo", "[ ! ] Action Required | x", "x ⠇ y"],
    ),
    (
        "codex-working",
        &[
            "◦ Working (5s • esc to interrupt)",
            "• Working (1m 05s • esc to interrupt) · 1 background terminal running",
            "• Reading the loader (12s • esc to int…",
            "◦ Thinking (1h 2m 3s •\nesc to interrupt)",
            "• Weighing the options (12s • esc to int",
            "• Working (12s • e └ cargo test",
        ],
        &[
            "• Parsing (12s • est. 5s)",
            "• It prints: • Working (12s • esc to interrupt)",
            "• Worked (12s)",
            "› Working (5s • esc to interrupt)",
        ],
    ),
    (
        "codex-queued",
        &[
            "• Messages to be submitted after next tool call (press esc to interrupt and send",
            "• Queued follow-up messages",
        ],
        &["› Messages to be submitted", "• The messages to be submitted", "• Queue the job"],
    ),
    (
        "codex-reconnecting",
        &["• Reconnecting... 1/5 (0s • esc to interrupt)", "◦ Reconnecting... 2/5 (1m 05s • esc to interrupt)"],
        &["• Reconnecting... soon", "› Reconnecting... 1/5 (0s", "• It says: Reconnecting... 1/5 (0s"],
    ),
    (
        "codex-queued-list",
        &["alt + ↑ edit", "⌥ + ↑ edit"],
        &["press alt + ↑ edit", "alt + ↑ edits the file", "• alt + ↑ edit"],
    ),
    ("codex-queued-text", &["↳ also check the parser"], &["↳", "• ↳ x", "see ↳ x"]),
    ("codex-pending-steer", &["! pending steer: next do the docs"], &["! pending", "• ! pending steer: x"]),
    (
        "codex-closed",
        &["Worked for <1s • 22:01", "─ Worked for 1m 02s ─────"],
        &["• Worked for 3s", "It worked for 3s"],
    ),
    (
        "codex-background",
        &["1 background terminal running · /ps to view", "3 background terminals running"],
        &["background terminal running", "• 1 background terminal running", "1 background terminal ended"],
    ),
    (
        "codex-limit",
        &[
            "■ You’ve hit your usage limit. Upgrade to Pro, visit https://x.y/z to purchase more credits or try again at Dec 1st, 2026 1:04 AM.",
            "■ You've hit your usage limit. Try again in 3 days 4 hours.",
        ],
        &["• You've hit your usage limit.", "■ You are near your usage limit", "› You’ve hit your usage limit"],
    ),
    (
        "codex-error-code",
        &[
            "■ unexpected status 503 Service Unavailable: x, url:\nhttp://127.0.0.1",
            "■ exceeded retry limit, last status: 429 Too Many",
        ],
        &["• unexpected status 503", "■ unexpected status 203", "■ status of the line"],
    ),
    (
        "codex-error",
        &["■ We’re currently experiencing high demand, which may", "■ stream disconnected before completion: x"],
        &["• high demand", "■ Conversation interrupted"],
    ),
    (
        "codex-signed-out",
        &[
            "■ unexpected status 401 Unauthorized: x",
            "■ Your access token could not be refreshed. Please sign in again.",
        ],
        &["• 401", "■ unexpected status 403"],
    ),
    ("codex-interrupted", &["■ Conversation interrupted - tell the model"], &["• Conversation interrupted"]),
    (
        "codex-notice",
        &["■ Something went wrong", "• Model changed to mock-1 medium for Plan mode.", "• Context compacted"],
        &["• I changed the model", "› Model changed to x", "• Models changed"],
    ),
    (
        "codex-turn-without-end",
        &["• the parser reads", "◦ the parser reads …", "› SCENARIO:slow", "…\nmock-1 default", "ddle of a frame"],
        &["■ x", "╭────", "/status", "•reads"],
    ),
    (
        "codex-turn-without-title",
        &[
            "• the parser reads\n100% context left · ? for shortcuts",
            "…\n98% context left",
            "dle\n7% context left",
            "• the parser reads\n2.52K used · ? for shortcuts",
            "• the parser reads\nmock-1 default · 100% left · /srv",
        ],
        &[
            "• 5K used\nmock-1 default · /srv/left",
            "• the parser reads\nmock-1 default · /srv",
            "■ x\n100% context left",
            "• has 9% context left\nmock-1 default",
        ],
    ),
    (
        "codex-trust",
        &[
            "1. Trust and continue\n2. Back",
            "Yes, continue\nNo, quit",
            "1. Yes, allow Codex to work in this folder without asking",
            "1. Yes, allow Codex to work\n2. No, ask me",
        ],
        &["Trust nobody", "1. Yes, proceed (y)", "x Trust and continue"],
    ),
    (
        "codex-login",
        &["1. Sign in with ChatGPT\n2. Sign in with Device Code"],
        &["How to Sign in with ChatGPT", "1. Sign out"],
    ),
    ("codex-plan", &["1. Yes, implement this plan          Switch"], &["1. Yes, proceed (y)", "implement this plan"]),
    ("codex-question", &["Question 1/1 (1 unanswered)\nWhich?"], &["A Question 1/1", "Question one"]),
    (
        "codex-permission",
        &[
            "1. Yes, proceed (y)",
            "Yes, and don't ask again for these files (a)",
            "3. No, and tell Codex what to do differently (esc)",
        ],
        &["1. Yes, implement this plan", "Say: Yes, proceed", "No, stay in Plan mode"],
    ),
    (
        "codex-menu",
        &[
            "enter select · esc back",
            "space toggle · enter save · esc cancel",
            "enter/esc confirm · ^c quit",
            "enter resume   esc exit",
        ],
        &["Press the key", "enter the room", "escape"],
    ),
];
