//! What each of opencode's rules matches, and what it must not.

use super::Fingerprint;

pub(crate) const TEXTS: &[Fingerprint] = &[
    (
        "opencode-interrupt",
        &[
            "■⬝⬝⬝⬝⬝⬝⬝  esc interrupt      1.3K (1%)",
            "⬝⬝■■ esc again to interrupt",
            "x [retrying in 9s attempt #3] esc\ninterrupt",
        ],
        &["/srv/demo   1.3K (1%)  ctrl+p commands", "describe interrupts", "esc dismiss"],
    ),
    ("opencode-spinner", &["■⬝⬝⬝⬝⬝⬝⬝  esc", "⬝This⬝request would exceed"], &["/srv/demo ■", "tab agents"]),
    (
        "opencode-retrying",
        &[
            "Internal server error [retrying in 1s attempt #2]",
            "x [retrying attempt #3]",
            "limit. [retrying\nattempt #3]",
        ],
        &["retrying attempt #3", "[retry]"],
    ),
    ("opencode-queued", &["┃ also this QUEUED"], &["QUEUED", "┃ QUEUED for later", "┃ also this"]),
    ("opencode-turn", &["▣ Build · Mock 1", "▣ Build · Mock 1 · 328ms"], &["┃ ▣ Build", "Build"]),
    (
        "opencode-signed-out",
        &["┃ invalid x-api-key", "┃ Error: 401 Unauthorized"],
        &["invalid x-api-key", "┃ 4012 rows", "┃ the key is valid"],
    ),
    (
        "opencode-error",
        &["┃ Internal server error", "┃ AI_APICallError: Overloaded"],
        &["Internal server error", "┃ the server"],
    ),
    ("opencode-start-page", &["Ask anything… \"Fix a TODO in the codebase\""], &["Ask anything", "I ask anything… "]),
    ("opencode-permission", &["△ Permission required"], &["Permission required", "x △ Permission required"]),
    (
        "opencode-question",
        &["3. In memory\n4. Type your own answer"],
        &["Type your own answer", "4. Type your own answer here"],
    ),
    ("opencode-question-hints", &["↑↓ select  enter submit  esc dismiss"], &["enter confirm", "esc dismiss"]),
    ("opencode-picker", &["Select model      esc\n\nSearch"], &["esc", "Select model\nesc x"]),
];
