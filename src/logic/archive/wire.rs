//! The bytes of recorded frames: one gzip member a frame, each holding one line of JSON, so that `zcat` prints an archive
//! and a member that is cut off or spoiled costs only itself.
//!
//! Shape: every member begins with the same bytes ([`is_mark`]): gzip's magic, and an extra field `NG` with the number of the
//! format. A reader that lost its place searches for the next ones.

use std::io::{self, Read as _, Write as _};

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};

use super::frame::Frame;

/// Number of the format. It goes up when an older reader would misread a frame; keys that are added do not count.
pub const FORMAT: u16 = 1;

/// The largest frame that is written or read, uncompressed, in bytes.
pub const MAX_FRAME_BYTES: u64 = 8 << 20;

/// Where the extra field's name stands in a member: after ten bytes of header and two of length.
const NAME_AT: usize = 12;
/// Bytes of a member before its compressed data.
const MARK_BYTES: usize = 18;

/// The bytes of a frame.
///
/// Errors: it is larger than [`MAX_FRAME_BYTES`], or can't be JSON.
pub fn encode(frame: &Frame) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(frame).map_err(io::Error::from)?;
    text.push(b'\n');
    if text.len() as u64 > MAX_FRAME_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a screen of more than 8 MiB"));
    }
    let mut extra = b"NG\x02\x00".to_vec();
    extra.extend_from_slice(&FORMAT.to_le_bytes());
    let mut member = GzBuilder::new().extra(extra).write(Vec::new(), Compression::default());
    member.write_all(&text)?;
    member.finish()
}

/// Whether the bytes are those of a recording, by how they begin.
pub fn is_recording(bytes: &[u8]) -> bool {
    is_mark(bytes)
}

/// Whether a member begins here.
fn is_mark(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b, 8, 4]) && bytes.get(NAME_AT..NAME_AT + 2) == Some(b"NG".as_slice())
}

/// A piece of an archive that holds no frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins, in bytes.
    pub at: usize,
    /// What is wrong with it.
    pub what: String,
}

/// Reads frames from the bytes of a file, past what is damaged.
#[derive(Debug)]
pub struct Frames<'a> {
    /// All of the file.
    bytes: &'a [u8],
    /// Where the next record is looked for.
    at: usize,
}

impl<'a> Frames<'a> {
    /// The frames in these bytes.
    pub const fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The first place from `from` on at which a member begins; the end if there is none.
    fn next_mark(&self, from: usize) -> usize {
        let end = self.bytes.len();
        (from..end).find(|at| self.bytes.get(*at..).is_some_and(is_mark)).unwrap_or(end)
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<Box<Frame>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let rest = self.bytes.get(at..).filter(|rest| !rest.is_empty())?;
        if !is_mark(rest) {
            self.at = self.next_mark(at);
            return Some(Err(Damage { at, what: format!("{} bytes are no record", self.at - at) }));
        }
        match decode(rest) {
            Ok((frame, used)) => {
                self.at = at.saturating_add(used.max(MARK_BYTES));
                Some(frame.map_err(|what| Damage { at, what }))
            }
            Err(what) => {
                self.at = self.next_mark(at + MARK_BYTES);
                Some(Err(Damage { at, what }))
            }
        }
    }
}

/// Reads the member that begins here: its frame, or why it is none, and how many bytes it has.
///
/// Errors: what is wrong with the member, whose end is then not known.
fn decode(bytes: &[u8]) -> Result<(Result<Box<Frame>, String>, usize), String> {
    let mut text = Vec::new();
    let mut member = GzDecoder::new(bytes);
    let format =
        bytes.get(MARK_BYTES - 2..MARK_BYTES).and_then(|number| number.try_into().ok()).map(u16::from_le_bytes);
    if format.is_some_and(|format| format > FORMAT) {
        return Err(format!("format {} is newer than this ng reads ({FORMAT})", format.unwrap_or_default()));
    }
    match member.by_ref().take(MAX_FRAME_BYTES + 1).read_to_end(&mut text) {
        Ok(_) if text.len() as u64 > MAX_FRAME_BYTES => return Err("more than 8 MiB in one record".to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err("cut off".to_owned()),
        Err(error) => return Err(format!("spoiled ({error})")),
    }
    let used = bytes.len() - member.into_inner().len();
    let frame = serde_json::from_slice(&text).map(Box::new).map_err(|error| format!("no frame ({error})"));
    Ok((frame, used))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::frame::tests::frame;
    use super::*;

    fn archive(texts: &[&str]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = Vec::new();
        let starts = texts
            .iter()
            .map(|text| {
                let start = bytes.len();
                bytes.extend(encode(&frame(&[text])).unwrap());
                start
            })
            .collect();
        (bytes, starts)
    }

    /// What is read: the screens' first rows, and the damaged places.
    fn read(bytes: &[u8]) -> (Vec<String>, Vec<Damage>) {
        let (mut texts, mut damaged) = (Vec::new(), Vec::new());
        for found in Frames::of(bytes) {
            match found {
                Ok(frame) => texts.push(frame.rows[0].clone()),
                Err(damage) => damaged.push(damage),
            }
        }
        (texts, damaged)
    }

    #[test]
    fn frames_read_back_and_every_member_begins_with_the_mark() {
        let (bytes, starts) = archive(&["a", "b\u{1b}[2m…", ""]);
        assert_eq!(read(&bytes), (vec!["a".to_owned(), "b\u{1b}[2m…".to_owned(), String::new()], vec![]));
        assert!(starts.iter().all(|at| is_recording(&bytes[*at..])), "{starts:?}");
    }

    #[test]
    fn a_record_that_is_cut_off_or_spoiled_costs_only_itself() {
        let (bytes, starts) = archive(&["a", "b", "c"]);
        let cut = &bytes[..bytes.len() - 3];
        assert_eq!(read(cut).0, ["a", "b"]);
        assert_eq!(read(cut).1, [Damage { at: starts[2], what: "cut off".into() }]);
        let mut spoiled = bytes.clone();
        spoiled[starts[1] + 40] ^= 0xff;
        assert_eq!((read(&spoiled).0, read(&spoiled).1.len()), (vec!["a".to_owned(), "c".to_owned()], 1));
        let mut newer = bytes.clone();
        newer[starts[1] + MARK_BYTES - 2] = 2;
        assert!(read(&newer).1[0].what.contains("format 2 is newer"), "{:?}", read(&newer));
        let rubbish: Vec<u8> = b"rubbish".iter().copied().chain(bytes).collect();
        assert_eq!((read(&rubbish).0.len(), read(&rubbish).1[0].at), (3, 0));
        assert_eq!(read(b""), (vec![], vec![]));
    }

    #[test]
    fn a_record_that_would_fill_the_memory_is_refused() {
        let extra = b"NG\x02\x00\x01\x00".to_vec();
        let mut bomb = GzBuilder::new().extra(extra).write(Vec::new(), Compression::default());
        bomb.write_all(&vec![b' '; 9 << 20]).unwrap();
        let (frames, damaged) = read(&bomb.finish().unwrap());
        assert!(frames.is_empty() && damaged[0].what.contains("8 MiB"), "{damaged:?}");
    }

    proptest! {
        #[test]
        fn no_damage_panics_or_hides_a_whole_record_after_it(at in 0..2000_usize, with in any::<u8>(), cut in 0..40_usize) {
            let (mut bytes, starts) = archive(&["a", "b"]);
            let at = at % starts[1];
            bytes[at] = with;
            bytes.drain(at..(at + cut).min(starts[1]));
            let (texts, _) = read(&bytes);
            prop_assert_eq!(texts.last().map(String::as_str), Some("b"));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
            let mut marked = archive(&["a"]).0[..MARK_BYTES].to_vec();
            marked.extend(bytes);
            let _ = read(&marked);
        }
    }
}
