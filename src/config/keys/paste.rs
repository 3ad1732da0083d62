//! Keys of delivery: how a text is put into a pane, and which proof of its arrival is asked for.

use crate::config::resolved::{Settings, ViGuard, Witnesses};
use crate::config::value::{Kind, Unit};

use super::{Key, Reload, secs, usize_of};

const WITNESSES: &[&str] = &["hook", "transcript", "screen"];

/// The rows, by name.
pub(super) const KEYS: &[Key] = &[
    Key {
        path: "monitor.paste.max_bytes",
        env: "MONITOR_PASTE_MAX_BYTES",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 49_152,
            range: 1024..=65_536,
            unit: Unit::Bytes,
            set: |s, n| s.paste_max_bytes = usize_of(n),
        },
        doc: "Largest text that is pasted; a longer one is cut at a line, with a pointer to the file that has all of it.",
    },
    Key {
        path: "monitor.paste.settle_seconds",
        env: "MONITOR_PASTE_SETTLE_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole { default: 5, range: 1..=60, unit: Unit::Seconds, set: |s, n| s.paste_settle = secs(n) },
        doc: "How long pasted text may take to show in the pane.",
    },
    Key {
        path: "monitor.paste.vi_guard",
        env: "MONITOR_PASTE_VI_GUARD",
        reload: Reload::Live,
        kind: Kind::Word { default: "auto", words: &["auto", "always", "never"], set: set_vi_guard },
        doc: "When `i` and backspace are sent before a paste: where the program did not ask for framed pastes, always, or never.",
    },
    Key {
        path: "monitor.paste.witnesses",
        env: "MONITOR_PASTE_WITNESSES",
        reload: Reload::Live,
        kind: Kind::List { default: WITNESSES, words: WITNESSES, may_be_empty: false, set: set_witnesses },
        doc: "Which proofs that a report arrived are looked for: the prompt hook, the session transcript, the screen.",
    },
    Key {
        path: "monitor.paste_confirm_timeout_seconds",
        env: "MONITOR_PASTE_CONFIRM_TIMEOUT_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole { default: 20, range: 1..=600, unit: Unit::Seconds, set: |s, n| s.paste_confirm = secs(n) },
        doc: "How long a proof is looked for that a report arrived.",
    },
];

#[expect(clippy::needless_pass_by_value, reason = "the table's setters own their value")]
fn set_witnesses(settings: &mut Settings, list: Vec<String>) {
    let has = |word: &str| list.iter().any(|item| item == word);
    settings.witnesses = Witnesses { hook: has("hook"), transcript: has("transcript"), screen: has("screen") };
}

fn set_vi_guard(settings: &mut Settings, word: &str) {
    settings.vi_guard = match word {
        "always" => ViGuard::Always,
        "never" => ViGuard::Never,
        _ => ViGuard::Auto,
    };
}
