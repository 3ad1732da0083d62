//! What each of Qwen Code's rules matches, and what it must not.

use super::Fingerprint;

pub(crate) const TEXTS: &[Fingerprint] = &[
    (
        "qwen-working",
        &[
            ".. Polishing the algorithms... (0s · ↑ 1 tokens · esc to cancel)",
            "... Loading... Do a barrel roll! (21s · esc to cancel)",
            "⠏ Waiting (3s · Esc zum Abbrechen)",
        ],
        &["✦ .. Polishing (1s · esc to cancel)", ".", ".... four", "Polishing... (1s · esc to cancel)"],
    ),
    (
        "qwen-queued",
        &[
            ". What's the fish? (None) (1m 5s · esc to cancel) and then this",
            ".. Herding cats... (9s · ↓ 4 tokens · esc to cancel) a (b) Press ↑ to edit queued messages",
        ],
        &[".. Polishing (really) words (0s · esc to cancel)", "✦ .. a (9s · esc to cancel) b"],
    ),
    ("qwen-tail-working", &["... Herding cats (9s · esc to cancel)"], &["> .. Herding", "✦ ... then"]),
    ("qwen-cancelled", &["● Request cancelled."], &["✦ Request cancelled.", "● Requests"]),
    ("qwen-info", &["● Theme set.", "△ Low on space", "※ recap: done"], &["✦ ● x", "●", "> ✓ x"]),
    (
        "qwen-error-code",
        &["✕ [API Error: 400 The request could not be parsed.] (Press Ctrl+Y to retry)"],
        &["✦ [API Error: 400 x]", "✕ [API Error: Connection error.]"],
    ),
    ("qwen-error", &["✕ [API Error: Connection error.]"], &["✕ Tool failed", "✦ [API Error: x]"]),
    ("qwen-turn-without-end", &["> Say hello\n? for shortcuts", "> 日本"], &["> /model\n", "✦ > Say", ">"]),
    (
        "qwen-trust",
        &["1. Trust folder (work)\n2. Trust parent folder (srv)", "3. Don't trust (esc)"],
        &["Do you Trust folder", "Trusting a folder"],
    ),
    (
        "qwen-permission",
        &["1. Yes, allow once\n2. Always allow run 'rm *' commands in this project", "4. No, suggest changes (esc)"],
        &["1. Yes", "say Yes, allow once"],
    ),
    (
        "qwen-menu",
        &[
            "Select Model\nEnter to select, ↑↓ to navigate, Esc to close",
            "(Use Enter to select, Tab to configure scope)",
        ],
        &["Press Esc", "Enter to select"],
    ),
];
