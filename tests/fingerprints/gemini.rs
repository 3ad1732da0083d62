//! What each of Gemini CLI's rules matches, and what it must not.

use super::Fingerprint;

pub(crate) const TEXTS: &[Fingerprint] = &[
    (
        "gemini-title-working",
        &["✦  Working… (demo)", "✦ Reading files (demo)"],
        &["◇  Ready (demo)", "✋  Action Required (demo)", "x ✦ y"],
    ),
    (
        "gemini-working",
        &[
            "⠼ Thinking... (esc to cancel, 5s) ? for shortcuts",
            "⠏ Reading the loader (esc to cancel, 2m 59s)",
            "⠹ Thinking... (esc to\ncancel, 8s)",
        ],
        &["It prints: ⠏ Thinking... (esc to cancel, 12s)", "⠼ Thinking...", "? for shortcuts"],
    ),
    ("gemini-working-cut", &["⠦ Thin", "⠼ Thinking..."], &["Thinking...", "⠦", "✦ ⠦ Thin"]),
    ("gemini-queued", &["Queued (press ↑ to edit): a draft"], &["It is Queued (press", "Queued: nothing"]),
    ("gemini-info", &["ℹ Request cancelled.", "ℹ Initializing..."], &["✦ ℹ x", "i Request"]),
    ("gemini-cancelled", &["ℹ Request cancelled."], &["ℹ Initializing...", "✦ Request cancelled."]),
    (
        "gemini-error-code",
        &["✕ [API Error: got status: 503 Service Unavailable]", "✕ [API Error: {\"code\":429}]"],
        &["✕ [API Error: terminated]", "✦ [API Error: 503]"],
    ),
    ("gemini-error", &["✕ [API Error: terminated]"], &["✕ Tool failed", "✦ [API Error: x]"]),
    (
        "gemini-limit",
        &[
            "✕ [API Error: You have exhausted your daily quota]",
            "ℹ You have reached your daily quota limit.",
            "✕ [API Error: RESOURCE_EXHAUSTED]",
        ],
        &["✦ You have reached your daily quota limit.", "ℹ You are near your quota limit"],
    ),
    (
        "gemini-trust",
        &["1. Trust folder (demo)\n2. Trust parent folder (srv)", "3. Don't trust"],
        &["Do you Trust folder", "Trusting a folder"],
    ),
    ("gemini-login", &["1. Sign in with Google\n2. Use Gemini API Key"], &["Sign in", "A Vertex AI"]),
    (
        "gemini-permission",
        &["1. Allow once\n2. Allow for this session", "3. No, suggest changes (esc)", "1. Yes, allow once"],
        &["Allowing once", "1. No", "To Allow once"],
    ),
    ("gemini-question", &["Answer Questions\nWhich?", "x\nReview your answers:"], &["The Answer Questions", "Answers"]),
    (
        "gemini-menu",
        &["Select Model\n(Press Esc to close)", "(Use Enter to select)"],
        &["Press Esc", "Enter to select"],
    ),
];
