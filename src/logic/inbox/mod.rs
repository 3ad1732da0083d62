//! The decisions inbox: how records are named (`protocol-facts` §6).
//!
//! A record is `decisions/<window stem>.<fingerprint>.json`; its tombstone has `.handled` before the ending. What a
//! record says is told by `logic::emit`; what an agent's hook puts into one is decided in `logic::hook`.

use super::ids::{Fingerprint, WindowName};

/// Path of a live record, relative to the state directory.
pub fn decision_path(stem: &str, fingerprint: &Fingerprint) -> String {
    format!("decisions/{stem}.{fingerprint}.json")
}

/// Path of the tombstone that closes a record.
pub fn tombstone_path(stem: &str, fingerprint: &Fingerprint) -> String {
    format!("decisions/{stem}.{fingerprint}.handled.json")
}

/// What a file name in `decisions/` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordName<'a> {
    /// The window's stem, ours or the older one; it may hold dots.
    pub stem: &'a str,
    /// The record.
    pub fingerprint: Fingerprint,
    /// Whether it is a tombstone.
    pub is_tombstone: bool,
}

impl<'a> RecordName<'a> {
    /// Reads a file name; `None` if it is not of that form.
    pub fn parse(name: &'a str) -> Option<Self> {
        let name = name.strip_suffix(".json")?;
        let (name, is_tombstone) = match name.strip_suffix(".handled") {
            Some(rest) => (rest, true),
            None => (name, false),
        };
        let (stem, fingerprint) = name.rsplit_once('.')?;
        let fingerprint = Fingerprint::parse(fingerprint)?;
        (!stem.is_empty()).then_some(Self { stem, fingerprint, is_tombstone })
    }
}

/// The stems under which a window's records may be filed: ours first, then the older one, then the bare name, where
/// they differ. A record that was told must be found again by the name that was told.
pub fn stems(window: &WindowName) -> Vec<String> {
    let mut stems = vec![window.file_stem()];
    let bare = if window.as_str().contains('/') { String::new() } else { window.to_string() };
    for other in [window.legacy_file_stem(), bare] {
        if !other.is_empty() && !stems.contains(&other) {
            stems.push(other);
        }
    }
    stems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_name_is_split_at_the_fingerprint_whatever_the_window_is_called() {
        for (name, stem, is_tombstone) in [
            ("w3.0a1b2c3d4e5f.json", "w3", false),
            ("a.b.0a1b2c3d4e5f.json", "a.b", false),
            ("w3.0a1b2c3d4e5f.handled.json", "w3", true),
            ("0a1b2c3d4e5f.0a1b2c3d4e5f.json", "0a1b2c3d4e5f", false),
        ] {
            let fingerprint = Fingerprint::parse("0a1b2c3d4e5f").unwrap();
            assert_eq!(RecordName::parse(name), Some(RecordName { stem, fingerprint, is_tombstone }), "{name}");
        }
        for odd in ["w3.json", ".0a1b2c3d4e5f.json", "w3.0A1B2C3D4E5F.json", "w3.0a1b2c3d4e5f.json.tmp.7", "", ".json"]
        {
            assert_eq!(RecordName::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn every_path_reads_back_as_its_name() {
        let fingerprint = Fingerprint::parse("0a1b2c3d4e5f").unwrap();
        for (path, is_tombstone) in
            [(decision_path("w", &fingerprint), false), (tombstone_path("w", &fingerprint), true)]
        {
            let name = path.strip_prefix("decisions/").unwrap();
            assert_eq!(RecordName::parse(name).unwrap().is_tombstone, is_tombstone);
        }
    }

    #[test]
    fn a_window_has_other_stems_only_where_they_differ() {
        assert_eq!(stems(&WindowName("w3".into())), ["w3"]);
        assert_eq!(stems(&WindowName("a/b".into())), ["a%2Fb", "a_b"]);
        assert_eq!(stems(&WindowName("a b".into())), ["a%20b", "a_b", "a b"]);
    }
}
