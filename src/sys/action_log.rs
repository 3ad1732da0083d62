//! `action-log.jsonl`: what agents and tools did, one JSON object a line (`protocol-facts` §5.1).
//!
//! Written compactly (`"event":"wrap-up"`), since other readers search for those bytes; read properly.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::rc::Rc;

use serde_json::Value;

use super::archived;
use super::files::{self, Durability, StateDir};
use crate::logic::snapshot::ActionEvent;

/// The log, relative to the state directory.
const LOG: &str = "action-log.jsonl";
/// Most bytes read from the end of a log, in all.
const MAX_READ_BYTES: u64 = 8 << 20;
/// How many more may be kept by appending before all is read anew.
const SLACK_BYTES: u64 = 1 << 20;
/// Events that are kept without asking whether they are of use.
const ROOM: usize = 2000;
/// How many bytes tell a log that was only appended to from another.
const BEFORE_BYTES: usize = 256;

/// Appends an event durably. The line appears whole or not at all.
pub fn append(state: &StateDir, event: &ActionEvent) -> io::Result<()> {
    let line = serde_json::to_string(event)?;
    files::append_lines(&state.at(LOG), &format!("{line}\n"), Durability::Durable)
}

/// The newest events, oldest first; archives (`action-log.jsonl.<epoch>`) are read while the log itself is short.
///
/// Lines that are no events are skipped. A missing log is no events.
pub fn read(state: &StateDir) -> io::Result<Vec<ActionEvent>> {
    let text = archived::read_tail(state, LOG, MAX_READ_BYTES)?.unwrap_or_default();
    Ok(text.lines().filter_map(event).collect())
}

/// Follows the log: what was read before is kept, and only what was appended since is read.
///
/// While nothing but appending happens, some more events are kept than [`read`] gives.
#[derive(Debug)]
pub struct Follower {
    place: Option<Place>,
    events: Rc<Vec<ActionEvent>>,
    /// Length of the lines that the events were read from.
    bytes: u64,
    /// The last event was read from a line that has no end yet.
    is_open: bool,
    /// With so many events, those without use are dropped.
    room: usize,
    drop_unused: fn(&mut Vec<ActionEvent>),
}

impl Default for Follower {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

/// How far a log was read.
#[derive(Debug)]
struct Place {
    device: u64,
    inode: u64,
    /// Behind the last whole line.
    offset: u64,
    /// The bytes before it: another file, or a log that was written anew, has others.
    before: Vec<u8>,
}

impl Follower {
    /// Follows a log from which `drop_unused` removes what nobody will ask for, now and then.
    pub fn new(drop_unused: fn(&mut Vec<ActionEvent>)) -> Self {
        Self { place: None, events: Rc::default(), bytes: 0, is_open: false, room: ROOM, drop_unused }
    }

    /// The newest events, oldest first.
    pub fn read(&mut self, state: &StateDir) -> io::Result<Rc<Vec<ActionEvent>>> {
        let is_followed = match self.place.take() {
            Some(place) => self.read_appended(&state.at(LOG), &place)?,
            None => false,
        };
        if !is_followed {
            self.read_all(state)?;
        }
        Ok(Rc::clone(&self.events))
    }

    /// Reads what was appended; `false` if the log is not the one that was read, or too much of it is new.
    fn read_appended(&mut self, path: &Path, place: &Place) -> io::Result<bool> {
        let Some(mut file) = files::open_regular(path)? else { return Ok(false) };
        let data = file.metadata()?;
        let new = data.len().checked_sub(place.offset);
        let fits = new.is_some_and(|new| self.bytes.saturating_add(new) <= MAX_READ_BYTES + SLACK_BYTES);
        if (data.dev(), data.ino()) != (place.device, place.inode) || !fits {
            return Ok(false);
        }
        file.seek(SeekFrom::Start(place.offset.saturating_sub(place.before.len() as u64)))?;
        let mut text = Vec::new();
        file.take(place.before.len() as u64 + new.unwrap_or(0)).read_to_end(&mut text)?;
        let Some(appended) = text.strip_prefix(place.before.as_slice()) else { return Ok(false) };
        if !appended.is_empty() {
            self.append(appended);
        }
        let offset = place.offset + whole(appended) as u64;
        self.place = Some(Place { offset, before: end_of(&text, appended), ..*place });
        Ok(true)
    }

    /// Adds the events of whole lines, and of what stands behind them.
    fn append(&mut self, text: &[u8]) {
        let events = Rc::make_mut(&mut self.events);
        if std::mem::take(&mut self.is_open) {
            events.pop();
        }
        let (lines, rest) = text.split_at(whole(text));
        for line in String::from_utf8_lossy(lines).lines() {
            events.extend(event(line));
            // Of a long log little is of use, and the rest would fill the memory.
            if events.len() >= self.room {
                (self.drop_unused)(events);
                self.room = (2 * events.len()).max(ROOM);
            }
        }
        let open = event(&String::from_utf8_lossy(rest));
        self.is_open = open.is_some();
        events.extend(open);
        self.bytes += lines.len() as u64;
    }

    fn read_all(&mut self, state: &StateDir) -> io::Result<()> {
        *self = Self::new(self.drop_unused);
        let about = || std::fs::metadata(state.at(LOG)).ok().map(|about| (about.dev(), about.ino(), about.len()));
        let earlier = about();
        let text = archived::read_tail(state, LOG, MAX_READ_BYTES)?.unwrap_or_default();
        self.append(text.as_bytes());
        // Where the text ends in the file is known only if nothing was written meanwhile, and if the text is the file's
        // bytes; else all is read again the next time.
        if let Some((device, inode, length)) = earlier.filter(|_| about() == earlier) {
            let whole = whole(text.as_bytes());
            let before = text.as_bytes().get(whole.saturating_sub(BEFORE_BYTES)..whole).unwrap_or_default();
            let rest = text.as_bytes().get(whole..).unwrap_or_default();
            let offset = length.checked_sub(rest.len() as u64);
            let is_exact = |bytes: &[u8]| !String::from_utf8_lossy(bytes).contains('\u{fffd}');
            self.place = offset.filter(|_| is_exact(before) && is_exact(rest)).map(|offset| {
                let within = before.len().saturating_sub(usize::try_from(offset).unwrap_or(usize::MAX));
                Place { device, inode, offset, before: before.get(within..).unwrap_or_default().to_vec() }
            });
        }
        Ok(())
    }
}

/// Length of the whole lines at the beginning of a text.
fn whole(text: &[u8]) -> usize {
    text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)
}

/// The last bytes of a text before what stands behind the last whole line of its end part `new`.
fn end_of(text: &[u8], new: &[u8]) -> Vec<u8> {
    let read = text.get(..text.len() - new.len() + whole(new)).unwrap_or_default();
    read.get(read.len().saturating_sub(BEFORE_BYTES)..).unwrap_or_default().to_vec()
}

/// Reads one line; values of other types become their text.
fn event(line: &str) -> Option<ActionEvent> {
    let Value::Object(fields) = serde_json::from_str(line).ok()? else { return None };
    let mut event = ActionEvent::default();
    for (key, value) in fields {
        let text = match value {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        };
        match key.as_str() {
            "ts" => event.ts = text,
            "agent" => event.agent = text,
            "event" => event.event = text,
            "note" => event.note = text,
            _ => {
                event.extra.insert(key, text);
            }
        }
    }
    (!event.event.is_empty()).then_some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(name: &str) -> ActionEvent {
        ActionEvent {
            ts: "2026-10-05T09:01:02-07:00".into(),
            agent: "monitor".into(),
            event: name.into(),
            ..Default::default()
        }
    }

    #[test]
    fn a_line_has_the_bytes_that_other_readers_search_for() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        let mut event = logged("wrap-up");
        event.extra.insert("window".into(), "w3".into());
        append(&state, &event).unwrap();
        assert_eq!(
            std::fs::read_to_string(state.at(LOG)).unwrap(),
            "{\"ts\":\"2026-10-05T09:01:02-07:00\",\"agent\":\"monitor\",\"event\":\"wrap-up\",\"window\":\"w3\"}\n"
        );
        assert_eq!(read(&state).unwrap(), [event]);
    }

    #[test]
    fn archives_come_first_and_odd_lines_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        std::fs::write(state.at("action-log.jsonl.20"), "{\"event\":\"b\"}\n").unwrap();
        std::fs::write(state.at("action-log.jsonl.9"), "{\"event\":\"a\"}\n").unwrap();
        std::fs::write(state.at("action-log.jsonl.lock"), "{\"event\":\"no\"}\n").unwrap();
        std::fs::write(state.at(LOG), "garbage\n[]\n{\"event\":\"c\",\"rc\":3}\n{\"event\":\"ha").unwrap();
        let events = read(&state).unwrap();
        assert_eq!(events.iter().map(|e| e.event.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(events[2].extra["rc"], "3");
    }

    #[test]
    fn following_the_log_gives_what_reading_it_gives() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        let mut follower = Follower::default();
        let line = |name: &str| format!("{{\"event\":\"{name}\"}}\n");
        let append = |text: &str| {
            let mut old = std::fs::read(state.at(LOG)).unwrap_or_default();
            old.extend_from_slice(text.as_bytes());
            // Not by another file in its place.
            std::fs::write(state.at(LOG), old).unwrap();
        };
        let steps: [(&str, &dyn Fn()); 13] = [
            ("no log", &|| {}),
            ("the first lines", &|| append(&(line("a") + &line("b")))),
            ("nothing new", &|| {}),
            ("a line", &|| append(&line("c"))),
            ("half a line", &|| append("{\"event\":")),
            ("its other half, without an end", &|| append("\"d\"}")),
            ("its end, and half a line", &|| append("\ngarb")),
            ("the rest, not UTF-8", &|| append("age\u{fffd}\n")),
            ("many lines", &|| append(&(0..2000).map(|nth| line(&format!("e{nth}"))).collect::<String>())),
            ("rotation", &|| {
                std::fs::rename(state.at(LOG), state.at("action-log.jsonl.20")).unwrap();
                append(&line("f"));
            }),
            ("a log written anew, longer", &|| std::fs::write(state.at(LOG), line("g").repeat(9)).unwrap()),
            ("a shorter one", &|| std::fs::write(state.at(LOG), line("h")).unwrap()),
            ("none", &|| std::fs::remove_file(state.at(LOG)).unwrap()),
        ];
        for (what, step) in steps {
            step();
            assert_eq!(*follower.read(&state).unwrap(), read(&state).unwrap(), "{what}");
        }
    }

    #[test]
    fn a_followed_log_is_not_read_again_and_stays_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        let mut follower = Follower::default();
        let pad = "x".repeat(1000);
        let block = format!("{{\"event\":\"e\",\"note\":\"{pad}\"}}\n").repeat(500);
        let mut kept = 0;
        for round in 0..25 {
            files::append_lines(&state.at(LOG), &block, Durability::Hint).unwrap();
            kept = follower.read(&state).unwrap().len();
            assert!(follower.bytes <= MAX_READ_BYTES + SLACK_BYTES, "{round}");
            if round == 4 {
                assert_eq!(kept, 2500, "the damaged line was read before it was damaged");
            }
            if round == 3 {
                // Of what was read before, only the end is looked at again.
                let mut text = std::fs::read(state.at(LOG)).unwrap();
                text[..40].fill(b'#');
                std::fs::write(state.at(LOG), text).unwrap();
            }
        }
        let newest = read(&state).unwrap();
        assert!(kept >= newest.len() && kept < newest.len() + 1200, "{kept} {}", newest.len());
    }

    #[test]
    fn a_missing_log_is_no_events() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(&StateDir::new(dir.path())).unwrap(), []);
    }
}
