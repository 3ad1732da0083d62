//! Finds decision rows in a report that ask to be acked, and says which command each means.
//!
//! The report is text from outside: only the exact shape `<ng> decision-ack <word> <12 hex digits>` is taken, and the
//! caller runs our own program with these two words as its arguments, never a shell.

use std::path::Path;

/// One decision to ack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ack {
    /// The window's (encoded) name.
    pub(super) window: String,
    /// The decision's fingerprint.
    pub(super) fingerprint: String,
}

/// Every decision row in `text` that names `monitor/ng` relative to the nexus, or by `root`.
pub(super) fn find(text: &str, root: &Path) -> Vec<Ack> {
    let absolute = root.join("monitor/ng");
    let mut found: Vec<Ack> = Vec::new();
    for line in text.lines() {
        let Some((_, row)) = line.split_once("ack=") else { continue };
        let mut words = row.split_whitespace();
        let (Some(program), Some(verb), Some(window), Some(fingerprint)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let ours = program == "monitor/ng" || Path::new(program) == absolute;
        if ours && verb == "decision-ack" && is_window(window) && is_fingerprint(fingerprint) {
            let ack = Ack { window: window.to_owned(), fingerprint: fingerprint.to_owned() };
            if !found.contains(&ack) {
                found.push(ack);
            }
        }
    }
    found
}

/// An encoded window name: it cannot be a switch, a path or anything with a meaning to a shell.
fn is_window(word: &str) -> bool {
    !word.starts_with(['-', '.']) && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.%".contains(&byte))
}

/// Twelve lower-case hex digits.
fn is_fingerprint(word: &str) -> bool {
    word.len() == 12 && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let found = find(text, Path::new("/srv/nexus"));
        let found: Vec<_> = found.iter().map(|ack| (ack.window.as_str(), ack.fingerprint.as_str())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn only_the_exact_command_is_taken() {
        check("    ack=monitor/ng decision-ack w3 0a1b2c3d4e5f", &[("w3", "0a1b2c3d4e5f")]);
        check("    ack=/srv/nexus/monitor/ng decision-ack a%20b 0a1b2c3d4e5f", &[("a%20b", "0a1b2c3d4e5f")]);
        check(
            "ack=monitor/ng decision-ack w 0a1b2c3d4e5f\nack=monitor/ng decision-ack w 0a1b2c3d4e5f",
            &[("w", "0a1b2c3d4e5f")],
        );
        check("ack=/tmp/evil/ng decision-ack w3 0a1b2c3d4e5f", &[]);
        check("ack=monitor/ng decision-ack --all 0a1b2c3d4e5f", &[]);
        check("ack=monitor/ng decision-ack ../../x 0a1b2c3d4e5f", &[]);
        check("ack=monitor/ng decision-ack w3;reboot 0a1b2c3d4e5f", &[]);
        check("ack=monitor/ng decision-ack w3 0A1B2C3D4E5F", &[]);
        check("ack=monitor/ng log-action w3 0a1b2c3d4e5f", &[]);
        check("nothing to see", &[]);
    }
}
