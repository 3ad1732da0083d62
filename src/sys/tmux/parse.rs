//! Reads what tmux prints into the types of the snapshot. Pure; every byte of it comes from outside.
//!
//! A row is numbers parted by single spaces (a value may be empty), then three texts whose byte lengths are among the
//! numbers. Names and titles can hold anything, so no separator would be safe; a length is.

use crate::logic::ids::{PaneId, ServerId, SessionId, WindowId, WindowName};
use crate::logic::snapshot::{DeadPane, PaneFacts};
use crate::logic::time::Timestamp;

use super::TmuxError;

/// Process id, start, version and socket of the server.
pub(super) const IDENTITY_FORMAT: &str = "#{pid} #{start_time} #{version} #{socket_path}";

/// A row a pane; [`parse_panes`] reads it.
pub(super) const PANE_FORMAT: &str = "#{pane_id} #{window_id} #{session_id} #{window_index} #{window_active} \
    #{pane_active} #{window_activity} #{pane_dead} #{pane_dead_status} #{pane_dead_signal} #{pane_pid} \
    #{pane_in_mode} #{pane_synchronized} #{alternate_on} #{cursor_x} #{cursor_y} #{cursor_flag} #{pane_width} #{pane_height} \
    #{history_size} #{window_bell_flag} #{n:session_name} #{n:window_name} #{n:pane_title} \
    #{session_name} #{window_name} #{pane_title}";

/// A row a window, for choosing where to attach: what [`parse_windows`] reads.
pub(super) const WINDOW_FORMAT: &str = "#{session_id} #{window_id} #{window_active} #{window_bell_flag} #{session_attached} #{destroy-unattached} \
    #{n:window_name} #{window_name}";

/// One row of [`WINDOW_FORMAT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WindowRow {
    /// The session.
    pub(super) session: SessionId,
    /// The window.
    pub(super) window: WindowId,
    /// Whether it is the session's current one.
    pub(super) active: bool,
    /// Whether its bell flag is set in that session.
    pub(super) bell: bool,
    /// Whether a client is attached to the session.
    pub(super) attached: bool,
    /// Whether the session ends when the last client leaves.
    pub(super) ends_unattached: bool,
    /// The window's name.
    pub(super) name: String,
}

/// Reads [`IDENTITY_FORMAT`]: the server and its version.
///
/// Errors: `TooOld` below 3.2, `Malformed` for anything that is no such row.
pub(super) fn parse_identity(raw: &[u8], doing: &'static str) -> Result<(ServerId, String), TmuxError> {
    let text = String::from_utf8_lossy(raw);
    let read = || {
        let mut fields = text.strip_suffix('\n')?.splitn(4, ' ');
        let pid = fields.next()?.parse().ok()?;
        let start_s = fields.next()?.parse().ok()?;
        let version = fields.next()?.to_owned();
        let socket = fields.next()?.to_owned();
        Some((ServerId { socket, pid, start_s }, version))
    };
    let (server, version) =
        read().ok_or_else(|| TmuxError::Malformed { doing, why: "the server did not say who it is".to_owned() })?;
    if version_is_supported(&version) { Ok((server, version)) } else { Err(TmuxError::TooOld { found: version }) }
}

/// Whether a version, as `tmux -V` or `#{version}` gives it, is 3.2 or later. One without a number (`master`) counts as
/// recent.
pub fn version_is_supported(version: &str) -> bool {
    let text = version.strip_prefix("tmux ").unwrap_or(version);
    let Some(start) = text.find(|c: char| c.is_ascii_digit()) else { return true };
    let number = text.get(start..).unwrap_or_default();
    let mut parts = number.split(|c: char| !c.is_ascii_digit());
    let mut next = || parts.next().and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(0);
    (next(), next()) >= (3, 2)
}

/// Reads all rows of [`PANE_FORMAT`], a linked window's panes once, with the bell of any of its links.
///
/// Errors: `Malformed` at the first row that does not fit; no row is guessed at.
pub(super) fn parse_panes(raw: &[u8], doing: &'static str) -> Result<Vec<PaneFacts>, TmuxError> {
    let mut panes: Vec<PaneFacts> = Vec::new();
    let mut places = std::collections::HashMap::new();
    let mut cursor = Cursor { rest: raw };
    while !cursor.rest.is_empty() {
        let row = panes.len();
        let facts = cursor
            .pane_row()
            .ok_or_else(|| TmuxError::Malformed { doing, why: format!("the row after {row} panes does not fit") })?;
        if let Some(known) = places.get(&facts.pane).and_then(|&place: &usize| panes.get_mut(place)) {
            known.bell |= facts.bell;
        } else {
            places.insert(facts.pane, row);
            panes.push(facts);
        }
    }
    Ok(panes)
}

/// Reads all rows of [`WINDOW_FORMAT`].
///
/// Errors: `Malformed` at the first row that does not fit.
pub(super) fn parse_windows(raw: &[u8], doing: &'static str) -> Result<Vec<WindowRow>, TmuxError> {
    let mut rows = Vec::new();
    let mut cursor = Cursor { rest: raw };
    while !cursor.rest.is_empty() {
        rows.push(
            cursor
                .window_row()
                .ok_or_else(|| TmuxError::Malformed { doing, why: "a window's row does not fit".to_owned() })?,
        );
    }
    Ok(rows)
}

/// The rows of one capture: a row a line.
pub(super) fn parse_rows(raw: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(raw);
    text.strip_suffix('\n').unwrap_or(&text).split('\n').map(str::to_owned).collect()
}

/// What is left to read.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// The next value, up to its space; it may be empty.
    fn field(&mut self) -> Option<&'a str> {
        let end = self.rest.iter().position(|&byte| byte == b' ' || byte == b'\n')?;
        let (field, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.strip_prefix(b" ")?;
        std::str::from_utf8(field).ok()
    }

    fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.field()?.parse().ok()
    }

    /// A number that may be missing: empty is `None`, anything else must be one.
    #[expect(clippy::option_option, reason = "outer: does the row fit; inner: is there a value")]
    fn optional<T: std::str::FromStr>(&mut self) -> Option<Option<T>> {
        match self.field()? {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        }
    }

    /// A flag: empty and zero are off, any other number (modes are counted) is on.
    fn flag(&mut self) -> Option<bool> {
        Some(self.optional::<u32>()?.is_some_and(|count| count > 0))
    }

    /// A text of so many bytes, and the byte behind it.
    fn text(&mut self, bytes: usize, then: u8) -> Option<String> {
        let (text, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest.strip_prefix(&[then])?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    fn pane_row(&mut self) -> Option<PaneFacts> {
        let pane = PaneId::parse(self.field()?)?;
        let window = WindowId::parse(self.field()?)?;
        let session = SessionId::parse(self.field()?)?;
        let window_index = self.number()?;
        let window_active = self.flag()?;
        let pane_active = self.flag()?;
        let activity = Timestamp::from_secs(self.number()?);
        let is_dead = self.flag()?;
        let dead = DeadPane { status: self.optional()?, signal: self.optional()? };
        let pid = self.optional::<u32>()?.filter(|&pid| pid > 0);
        let in_mode = self.flag()?;
        let synchronized = self.flag()?;
        let alternate_on = self.flag()?;
        let cursor = (self.number()?, self.number()?);
        let cursor_shown = self.flag()?;
        let size = (self.number()?, self.number()?);
        let history = self.number()?;
        let bell = self.flag()?;
        let (session_bytes, name_bytes, title_bytes) = (self.number()?, self.number()?, self.number()?);
        let session_name = self.text(session_bytes, b' ')?;
        let window_name = WindowName(self.text(name_bytes, b' ')?);
        let title = self.text(title_bytes, b'\n')?;
        Some(PaneFacts {
            pane,
            window,
            session,
            session_name,
            window_name,
            window_index,
            window_active,
            pane_active,
            activity,
            dead: is_dead.then_some(dead),
            pid,
            in_mode,
            synchronized,
            alternate_on,
            cursor,
            cursor_shown,
            size,
            history,
            bell,
            title,
        })
    }

    fn window_row(&mut self) -> Option<WindowRow> {
        let session = SessionId::parse(self.field()?)?;
        let window = WindowId::parse(self.field()?)?;
        let active = self.flag()?;
        let bell = self.flag()?;
        let attached = self.flag()?;
        // A number on older versions, a word (`keep-last`) on later ones.
        let ends_unattached = !matches!(self.field()?, "" | "0" | "off");
        let bytes = self.number()?;
        let name = self.text(bytes, b'\n')?;
        Some(WindowRow { session, window, active, bell, attached, ends_unattached, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row with these three texts, lengths as tmux counts them.
    fn row(pane: u32, bell: u8, session: &str, name: &str, title: &str) -> String {
        let (s, n, t) = (session.len(), name.len(), title.len());
        format!(
            "%{pane} @1 $0 2 1 0 1700000000 0   4711 0 0 1 7 8 0 80 24 12 {bell} {s} {n} {t} {session} {name} {title}\n"
        )
    }

    #[test]
    fn a_row_is_read_whole() {
        let panes = parse_panes(row(3, 0, "main", "w1", "t").as_bytes(), "testing").unwrap();
        let facts = &panes[0];
        assert_eq!((facts.pane, facts.window, facts.session), (PaneId::new(3), WindowId::new(1), SessionId::new(0)));
        assert_eq!((facts.window_index, facts.window_active, facts.pane_active), (2, true, false));
        assert_eq!((facts.dead, facts.pid), (None, Some(4711)));
        assert_eq!((facts.in_mode, facts.synchronized, facts.alternate_on), (false, false, true));
        assert_eq!((facts.cursor, facts.cursor_shown), ((7, 8), false));
        assert_eq!((facts.size, facts.history, facts.bell), ((80, 24), 12, false));
        assert_eq!(facts.activity, Timestamp::from_secs(1_700_000_000));
    }

    #[test]
    fn hostile_names_and_titles_cannot_forge_a_row() {
        let forged = row(9, 1, "x", "y", "z");
        for text in ["", " ", "a b", "a\tb", "日本😀", "%1 @2 $3", "#{pid}", "a:b.c", "'\"", &forged, "\n\n", "é"]
        {
            let raw = row(3, 0, text, text, text) + &row(4, 0, "s", "n", "t");
            let panes = parse_panes(raw.as_bytes(), "testing").unwrap();
            assert_eq!(panes.len(), 2, "{text:?}");
            assert_eq!((panes[0].session_name.as_str(), panes[0].window_name.as_str()), (text, text));
            assert_eq!((panes[0].title.as_str(), panes[1].pane), (text, PaneId::new(4)));
        }
    }

    #[test]
    fn a_row_that_does_not_fit_fails_the_whole_answer() {
        let good = row(3, 0, "s", "n", "t");
        for bad in
            ["\n", "%3", "no server", &good[..good.len() - 1], &good.replace("4711", "x"), &good.replace("%3", "3")]
        {
            let raw = format!("{good}{bad}");
            assert!(parse_panes(raw.as_bytes(), "testing").is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_linked_window_is_listed_once_and_rings_if_any_link_rings() {
        let raw = row(3, 0, "a", "n", "t") + &row(3, 1, "b", "n", "t");
        let panes = parse_panes(raw.as_bytes(), "testing").unwrap();
        assert_eq!((panes.len(), panes[0].bell, panes[0].session_name.as_str()), (1, true, "a"));
    }

    #[test]
    fn a_dead_pane_tells_how_it_ended() {
        let raw = row(3, 0, "s", "n", "t").replace(" 0   4711", " 1 7  4711");
        let panes = parse_panes(raw.as_bytes(), "testing").unwrap();
        assert_eq!(panes[0].dead, Some(DeadPane { status: Some(7), signal: None }));
    }

    #[test]
    fn versions_from_3_2_are_supported() {
        for good in ["3.2", "3.2a", "3.3a", "next-3.5", "tmux 3.6b", "4.0", "3.10", "master", "openbsd-7.4"] {
            assert!(version_is_supported(good), "{good}");
        }
        for old in ["3.1c", "2.9", "tmux 1.8", "next-3.1", "3"] {
            assert!(!version_is_supported(old), "{old}");
        }
    }

    #[test]
    fn the_identity_names_the_server() {
        let (server, version) = parse_identity(b"12 1700000000 3.3a /tmp/a b/x\n", "testing").unwrap();
        assert_eq!(server, ServerId { socket: "/tmp/a b/x".to_owned(), pid: 12, start_s: 1_700_000_000 });
        assert_eq!(version, "3.3a");
        assert!(matches!(parse_identity(b"12 1 3.1 /x\n", "testing"), Err(TmuxError::TooOld { .. })));
        for bad in ["", "\n", "a b c d\n", "12 1 3.3a\n"] {
            assert!(matches!(parse_identity(bad.as_bytes(), "t"), Err(TmuxError::Malformed { .. })), "{bad:?}");
        }
    }

    #[test]
    fn rows_are_kept_as_they_are() {
        for (raw, rows) in [("a\n\n b \n", vec!["a", "", " b "]), ("\n", vec![""]), ("", vec![""])] {
            assert_eq!(parse_rows(raw.as_bytes()), rows);
        }
    }

    #[test]
    fn windows_are_read_for_the_choice_of_a_session() {
        let rows = parse_windows("$1 @2 1 0 0 keep-last 3 a b\n".as_bytes(), "testing").unwrap();
        assert_eq!(rows[0].name, "a b");
        assert!(rows[0].active && rows[0].ends_unattached && !rows[0].attached && !rows[0].bell);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
            let _ = parse_panes(&bytes, "testing");
            let _ = parse_windows(&bytes, "testing");
            let _ = parse_identity(&bytes, "testing");
        }
    }
}
