//! Bytes from the terminal to keys. Owns what is still incomplete: a cut escape sequence, a cut character, an open
//! paste. It does no input itself.

/// What a person, or a program that types for one, did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A character.
    Char(char),
    /// A framed paste, with its line ends made `\n`.
    Paste(String),
    /// Carriage return.
    Enter,
    /// Line feed: a line break in the draft.
    Newline,
    /// Escape by itself.
    Escape,
    /// Delete to the left.
    Backspace,
    /// Tab.
    Tab,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// A control letter, in lower case.
    Ctrl(char),
    /// A sequence that means nothing here.
    Other,
}

/// Start and end of a framed paste.
const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// Longer than any sequence a terminal sends; more than this is noise.
const MAX_SEQUENCE: usize = 32;

/// Turns bytes into keys, however they are cut into reads.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
}

impl Decoder {
    /// Takes what was read; returns the keys that are complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut keys = Vec::new();
        for byte in bytes {
            if let Some(paste) = &mut self.paste {
                paste.push(*byte);
                if paste.ends_with(PASTE_END) {
                    paste.truncate(paste.len() - PASTE_END.len());
                    let text = String::from_utf8_lossy(paste).replace("\r\n", "\n").replace('\r', "\n");
                    keys.push(Key::Paste(text));
                    self.paste = None;
                }
                continue;
            }
            self.pending.push(*byte);
            self.take_complete(&mut keys);
        }
        keys
    }

    /// Whether an Escape may still become a sequence.
    pub(super) fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Nothing followed for a while: what is pending is all there is.
    pub(super) fn flush(&mut self) -> Vec<Key> {
        match std::mem::take(&mut self.pending).as_slice() {
            [] => Vec::new(),
            [0x1b] => vec![Key::Escape],
            _ => vec![Key::Other],
        }
    }

    fn take_complete(&mut self, keys: &mut Vec<Key>) {
        let pending = self.pending.as_slice();
        if pending == PASTE_START {
            self.pending.clear();
            self.paste = Some(Vec::new());
            return;
        }
        let key = match pending {
            [0x1b] | [0x1b, b'[' | b'O'] => None,
            [0x1b, b'[', .., last] if (0x40..=0x7e).contains(last) => Some(arrow(*last, pending.len())),
            [0x1b, b'[', ..] if pending.len() < MAX_SEQUENCE => None,
            [0x1b, b'O', last] => Some(arrow(*last, pending.len())),
            [0x1b, 0x1b] => {
                // Escape twice: the second may begin a sequence.
                keys.push(Key::Escape);
                self.pending = vec![0x1b];
                return;
            }
            [0x1b, ..] => Some(Key::Other),
            [byte] if *byte < 0x80 => Some(plain(*byte)),
            _ => match std::str::from_utf8(pending) {
                Ok(text) => text.chars().next().map(Key::Char),
                Err(error) if error.error_len().is_none() => None,
                Err(_) => Some(Key::Other),
            },
        };
        if let Some(key) = key {
            self.pending.clear();
            keys.push(key);
        }
    }
}

/// A byte below 0x80 that is not part of a sequence.
fn plain(byte: u8) -> Key {
    match byte {
        b'\r' => Key::Enter,
        b'\n' => Key::Newline,
        b'\t' => Key::Tab,
        0x08 | 0x7f => Key::Backspace,
        1..=26 => Key::Ctrl(char::from(byte - 1 + b'a')),
        0x20..=0x7e => Key::Char(char::from(byte)),
        _ => Key::Other,
    }
}

/// The last byte of a cursor-key sequence without parameters.
fn arrow(last: u8, length: usize) -> Key {
    match (last, length) {
        (b'A', 3) => Key::Up,
        (b'B', 3) => Key::Down,
        (b'C', 3) => Key::Right,
        (b'D', 3) => Key::Left,
        _ => Key::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the bytes whole and one by one; both must give the same keys.
    fn check(bytes: &[u8], expected: &[Key]) {
        let mut whole = Decoder::default();
        let mut keys = whole.feed(bytes);
        keys.extend(whole.flush());
        assert_eq!(keys, expected, "read at once: {}", bytes.escape_ascii());
        let mut cut = Decoder::default();
        let mut keys: Vec<Key> = bytes.iter().flat_map(|byte| cut.feed(&[*byte])).collect();
        keys.extend(cut.flush());
        assert_eq!(keys, expected, "read byte by byte: {}", bytes.escape_ascii());
    }

    #[test]
    fn keys_come_out_the_same_however_reads_are_cut() {
        check(
            b"a\r\n\t\x7f\x03",
            &[Key::Char('a'), Key::Enter, Key::Newline, Key::Tab, Key::Backspace, Key::Ctrl('c')],
        );
        check("é漢🙂".as_bytes(), &[Key::Char('é'), Key::Char('漢'), Key::Char('🙂')]);
        check(b"\x1b[A\x1b[B\x1bOC\x1b[1;5D", &[Key::Up, Key::Down, Key::Right, Key::Other]);
        check(b"\x1b[200~one\rtwo\r\nthree\x1b[201~\r", &[Key::Paste("one\ntwo\nthree".into()), Key::Enter]);
        check(b"\x1b[200~\x1b[A\x1b[201~", &[Key::Paste("\x1b[A".into())]);
        check(b"\x1b", &[Key::Escape]);
        check(b"\x1b\x1b", &[Key::Escape, Key::Escape]);
        check(b"\xff", &[Key::Other]);
    }
}
