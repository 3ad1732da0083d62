//! Newtypes for everything that names something: tmux objects, servers, windows in file names, emits.
//!
//! A pane is identified by (server, pane id). A window *name* is a label that can change or repeat. An id in memory carries
//! the number of its server, so that no map keyed by ids mixes servers; tmux itself only ever sees the raw id.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The position of a tmux server in `monitor.tmux.sockets`, from 0.
pub type ServerNumber = u8;

/// Defines a tmux id such as `%12`: a sigil and a number, and which of the watched servers it belongs to.
macro_rules! tmux_id {
    ($(#[$doc:meta])* $name:ident, $sigil:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name {
            server: ServerNumber,
            number: u32,
        }

        impl $name {
            /// The id with this number, on the first server.
            pub const fn new(number: u32) -> Self {
                Self { server: 0, number }
            }

            /// The number after the sigil.
            pub const fn number(self) -> u32 {
                self.number
            }

            /// The server that it belongs to.
            pub const fn server(self) -> ServerNumber {
                self.server
            }

            /// The id with the same number on this server.
            #[must_use]
            pub const fn on(self, server: ServerNumber) -> Self {
                Self { server, number: self.number }
            }

            /// The id as that server itself knows it.
            #[must_use]
            pub const fn raw(self) -> Self {
                self.on(0)
            }

            /// Reads the id as tmux prints it, or with the number of its server before it (`1/%12`); `None` for
            /// anything else.
            pub fn parse(text: &str) -> Option<Self> {
                let (server, id) = match text.split_once('/') {
                    // The first server's number is never written, so that an id has one spelling.
                    Some((server, id)) => (decimal(server).filter(|server| *server > 0)?, id),
                    None => (0, text),
                };
                let number = decimal(id.strip_prefix($sigil)?)?;
                Some(Self { server, number })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.server > 0 {
                    write!(f, "{}/", self.server)?;
                }
                write!(f, "{}{}", $sigil, self.number)
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;
            fn try_from(text: String) -> Result<Self, String> {
                Self::parse(&text).ok_or_else(|| format!("{text:?} is not of the form {}N", $sigil))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }
    };
}

/// A number in digits only.
fn decimal<N: std::str::FromStr>(text: &str) -> Option<N> {
    let is_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_digits)
}

tmux_id!(
    /// A tmux pane id, `%12`. Unique while one server lives; starts again at `%0` with the next.
    PaneId,
    '%'
);
tmux_id!(
    /// A tmux window id, `@12`.
    WindowId,
    '@'
);
tmux_id!(
    /// A tmux session id, `$12`.
    SessionId,
    '$'
);

/// One running tmux server: pane ids mean something only together with this.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServerId {
    /// Path of the server's socket as the server reports it.
    pub socket: String,
    /// The server's process id, in the pid namespace that we see.
    pub pid: u32,
    /// When the server started, in whole seconds since 1970 UTC.
    pub start_s: i64,
}

/// A pane of a particular server: the only identity that actions use.
///
/// Two keys are equal if they name the same pane of the same server, whatever number the server has at the moment: keys
/// are journalled, and the list of servers may be in another order by the next start.
#[derive(Clone, Debug, Eq, Serialize, Deserialize)]
pub struct PaneKey {
    /// The server that the id belongs to.
    pub server: ServerId,
    /// The pane within that server.
    pub pane: PaneId,
}

impl PaneKey {
    /// What tells it from every other pane.
    fn identity(&self) -> (&ServerId, u32) {
        (&self.server, self.pane.number())
    }
}

impl PartialEq for PaneKey {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl PartialOrd for PaneKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PaneKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl Hash for PaneKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// Longest stem, in bytes: with a fingerprint, `.handled.json` and a temporary ending it still fits a file name (255).
const MAX_STEM: usize = 180;

/// A window's name: a label from outside, possibly repeated, possibly hostile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WindowName(pub String);

impl WindowName {
    /// The name as tmux gives it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The file name stem that state files of this window carry (`contracts.md` §1).
    ///
    /// `[A-Za-z0-9_-]` and `.` (except at the start) stay, every other byte becomes `%XX`, so distinct names never
    /// share a file and no name leaves the directory. A stem too long for a file name keeps its beginning, then `~` and a
    /// hash of the whole name, since no short stem holds a `~`; the name is then in the file only.
    pub fn file_stem(&self) -> String {
        let stem = self.full_stem();
        if stem.len() <= MAX_STEM {
            return stem;
        }
        let digest = Sha256::digest(self.0.as_bytes());
        let short = digest.iter().take(8).fold(0_u64, |hash, byte| (hash << 8) | u64::from(*byte));
        let hash = format!("{short:016x}");
        let mut cut = MAX_STEM - 1 - hash.len();
        // Not in the middle of an encoded byte.
        while stem.get(cut.saturating_sub(2)..cut).is_some_and(|end| end.contains('%')) {
            cut -= 1;
        }
        format!("{}~{hash}", stem.get(..cut).unwrap_or_default())
    }

    /// The stem at any length.
    fn full_stem(&self) -> String {
        let mut stem = String::with_capacity(self.0.len());
        for (i, byte) in self.0.bytes().enumerate() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => stem.push(char::from(byte)),
                b'.' if i > 0 => stem.push('.'),
                _ => {
                    use fmt::Write as _;
                    // Writing to a String cannot fail.
                    let _infallible = write!(stem, "%{byte:02X}");
                }
            }
        }
        stem
    }

    /// The older, lossy stem (`_` for every other byte) that the original shell tools wrote; readers accept it too.
    pub fn legacy_file_stem(&self) -> String {
        self.0.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
    }

    /// The name whose [`Self::file_stem`] this is; `None` if it is no stem that we write, or a shortened one.
    pub fn from_file_stem(stem: &str) -> Option<Self> {
        if stem.contains('~') {
            return None;
        }
        let mut bytes = Vec::with_capacity(stem.len());
        let mut rest = stem.bytes();
        while let Some(byte) = rest.next() {
            if byte == b'%' {
                let (high, low) = (rest.next()?, rest.next()?);
                let digits = [high, low];
                // Ours are upper-case; a sign, which the parser would take, is none.
                let is_ours = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F'));
                let text = std::str::from_utf8(&digits).ok().filter(|_| is_ours)?;
                bytes.push(u8::from_str_radix(text, 16).ok()?);
            } else {
                bytes.push(byte);
            }
        }
        String::from_utf8(bytes).ok().map(Self)
    }
}

impl fmt::Display for WindowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A decision's fingerprint: twelve lower-case hex digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Reads twelve lower-case hex digits; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (text.len() == 12 && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The signature of one emit: the time it carries and a nonce. Its text is the proof that witnesses look for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Signature {
    /// The timestamp exactly as printed (ISO 8601 with offset).
    pub iso: String,
    /// Six lower-case hex digits, unique for the emit.
    pub nonce: String,
}

impl Signature {
    /// The words that an emit starts with; of a long message in an agent's queue only the start is shown.
    pub fn opening(&self) -> String {
        format!("=== nexus state changed at {}", self.iso)
    }

    /// The words that witnesses search for: `nexus-emit-sig <iso> <nonce>`.
    pub fn needle(&self) -> String {
        format!("nexus-emit-sig {} {}", self.iso, self.nonce)
    }

    /// The trailer line: `--- nexus-emit-sig <iso> <nonce> ---`.
    pub fn trailer(&self) -> String {
        format!("--- {} ---", self.needle())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tmux_ids_are_a_sigil_and_digits_only() {
        assert_eq!(PaneId::parse("%12"), Some(PaneId::new(12)));
        for bad in ["12", "%", "%-1", "%1 ", "@1", "%99999999999"] {
            assert_eq!(PaneId::parse(bad), None, "{bad}");
        }
        assert_eq!(WindowId::new(3).to_string(), "@3");
    }

    #[test]
    fn an_id_of_another_server_has_its_number_before_it() {
        let other = PaneId::new(12).on(1);
        assert_eq!((other.to_string().as_str(), PaneId::parse("1/%12")), ("1/%12", Some(other)));
        assert_eq!((other.number(), other.server(), other.raw()), (12, 1, PaneId::new(12)));
        assert_ne!(other, PaneId::new(12));
        assert!(PaneId::new(99) < other, "sorted by server first");
        for bad in ["0/%12", "/%12", "1/", "1/@12", "+1/%12", "256/%12", "1/1/%12", "1/%", "%1/%2"] {
            assert_eq!(PaneId::parse(bad), None, "{bad}");
        }
        for id in [PaneId::new(3), PaneId::new(3).on(255)] {
            let text = serde_json::to_string(&id).unwrap();
            assert_eq!(serde_json::from_str::<PaneId>(&text).unwrap(), id);
        }
        assert_eq!(serde_json::to_string(&PaneId::new(3)).unwrap(), "\"%3\"", "as older files have it");
    }

    #[test]
    fn a_key_does_not_depend_on_the_order_of_the_servers() {
        let server = |pid| ServerId { socket: "/s".into(), pid, start_s: 1 };
        let key = |pid, pane: PaneId| PaneKey { server: server(pid), pane };
        assert_eq!(key(1, PaneId::new(5)), key(1, PaneId::new(5).on(1)));
        assert_ne!(key(1, PaneId::new(5)), key(2, PaneId::new(5)));
        assert_ne!(key(1, PaneId::new(5)), key(1, PaneId::new(6)));
    }

    #[test]
    fn window_stems_are_reversible_and_never_leave_the_directory() {
        for name in ["w3", "a.b", "..", ".hidden", "a/b", "ü x", "%3", "", "a%2Fb", "•bell"] {
            let name = WindowName(name.to_owned());
            let stem = name.file_stem();
            assert!(!stem.starts_with('.') && !stem.contains('/'), "{stem}");
            assert_eq!(WindowName::from_file_stem(&stem), Some(name));
        }
        for odd in ["%", "%4", "%+A", "%zz", "%e4"] {
            assert_eq!(WindowName::from_file_stem(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_long_name_gets_a_short_stem_of_its_own() {
        let long = |tail: &str| WindowName(format!("{}{tail}", "窗口".repeat(60)));
        let stem = long("a").file_stem();
        assert!(stem.len() <= MAX_STEM && stem.contains('~') && stem.is_ascii(), "{stem}");
        assert_ne!(stem, long("b").file_stem());
        assert_eq!(WindowName::from_file_stem(&stem), None);
        for length in 150..200 {
            assert!(WindowName("ü".repeat(length)).file_stem().len() <= MAX_STEM);
        }
    }

    #[test]
    fn distinct_window_names_never_share_a_stem() {
        assert_ne!(WindowName("a/b".into()).file_stem(), WindowName("a_b".into()).file_stem());
        assert_eq!(WindowName("a/b".into()).legacy_file_stem(), "a_b");
    }

    #[test]
    fn fingerprints_are_twelve_lower_case_hex_digits() {
        assert!(Fingerprint::parse("0a1b2c3d4e5f").is_some());
        for bad in ["0A1b2c3d4e5f", "0a1b2c3d4e5", "0a1b2c3d4e5fg", "../../../etc"] {
            assert!(Fingerprint::parse(bad).is_none(), "{bad}");
        }
    }
}
