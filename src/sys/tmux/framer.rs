//! Cuts the byte stream of a control client into replies and notifications. Pure: bytes in, frames out.
//!
//! A reply runs from `%begin <time> <number> <flags>` to `%end` or `%error` with the same time and number; what stands
//! between is data, whatever it looks like. A pane that guesses the numbers could end its own block early; the real
//! end of that block then turns up where it can't be, which is [`Frame::Broken`].

use std::collections::VecDeque;

/// Something happened on the server that is worth a look before the next tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TmuxEvent {
    /// A window closed, in any session.
    WindowClosed,
    /// A window appeared, in any session.
    WindowAdded,
    /// A window got another name.
    WindowRenamed,
    /// A pane of the attached session entered or left a tmux mode.
    PaneMode,
    /// A session appeared, ended, or its current window changed.
    SessionsChanged,
    /// The control client ended; reads go on by other means.
    Exit,
}

/// One thing read from the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A whole reply.
    Reply {
        /// Whether it answers a line of ours; else it is the attach itself or a hook.
        ours: bool,
        /// `%end`, not `%error`.
        ok: bool,
        /// The lines, each with its line feed.
        body: Vec<u8>,
    },
    /// A notification.
    Event(TmuxEvent),
    /// The stream makes no sense any more; nothing after it can be trusted.
    Broken(&'static str),
}

/// A reply that has begun.
#[derive(Debug)]
struct Block {
    guard: Guard,
    ours: bool,
    body: Vec<u8>,
}

/// The time and number that frame a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Guard {
    time: u64,
    number: u64,
}

/// How many finished blocks are remembered: more than a screen has rows to forge.
const REMEMBERED: usize = 1024;
/// A line longer than this is no line of tmux's.
const MAX_LINE: usize = 4 << 20;

/// The state of the cut.
#[derive(Debug, Default)]
pub(super) struct Framer {
    line: Vec<u8>,
    block: Option<Block>,
    finished: VecDeque<Guard>,
}

impl Framer {
    /// Takes more bytes and appends what is complete.
    pub(super) fn push(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.len() > MAX_LINE {
                frames.push(Frame::Broken("a line without end"));
                return;
            }
            if piece.ends_with(b"\n") {
                let mut line = std::mem::take(&mut self.line);
                frames.extend(self.take(&line));
                // The buffer's room serves the next line.
                line.clear();
                self.line = line;
            }
        }
    }

    fn take(&mut self, line: &[u8]) -> Option<Frame> {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        let parsed = parse_guard(bare);
        let Some(block) = &mut self.block else {
            return match parsed {
                Some((Word::Begin, guard, ours)) => {
                    if self.finished.back().is_some_and(|last| guard.number <= last.number) {
                        return Some(Frame::Broken("block numbers run backwards"));
                    }
                    self.block = Some(Block { guard, ours, body: Vec::new() });
                    None
                }
                Some(_) => Some(Frame::Broken("an end without a beginning")),
                None => notification(bare),
            };
        };
        match parsed {
            Some((word @ (Word::End | Word::Error), guard, _)) if guard == block.guard => {
                let block = self.block.take()?;
                if self.finished.len() == REMEMBERED {
                    self.finished.pop_front();
                }
                self.finished.push_back(guard);
                Some(Frame::Reply { ours: block.ours, ok: word == Word::End, body: block.body })
            }
            Some((_, guard, _)) if self.finished.contains(&guard) => {
                Some(Frame::Broken("a block ended twice: a pane imitates tmux"))
            }
            _ => {
                block.body.extend_from_slice(line);
                None
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Begin,
    End,
    Error,
}

/// Reads `%begin <time> <number> <flags>` and its like; nothing else. The flag says whether the block is ours.
fn parse_guard(line: &[u8]) -> Option<(Word, Guard, bool)> {
    if line.first() != Some(&b'%') || line.len() > 80 {
        return None;
    }
    let mut fields = std::str::from_utf8(line).ok()?.split(' ');
    let word = match fields.next()? {
        "%begin" => Word::Begin,
        "%end" => Word::End,
        "%error" => Word::Error,
        _ => return None,
    };
    let guard = Guard { time: fields.next()?.parse().ok()?, number: fields.next()?.parse().ok()? };
    let flags: u32 = fields.next()?.parse().ok()?;
    fields.next().is_none().then_some((word, guard, flags & 1 == 1))
}

/// The event that a line outside a block tells of, if it is one that we care for.
fn notification(line: &[u8]) -> Option<Frame> {
    if line.first() != Some(&b'%') {
        return Some(Frame::Broken("text outside a block"));
    }
    let word = line.split(|&byte| byte == b' ').next()?;
    let event = match word {
        b"%window-close" | b"%unlinked-window-close" => TmuxEvent::WindowClosed,
        b"%window-add" | b"%unlinked-window-add" => TmuxEvent::WindowAdded,
        b"%window-renamed" | b"%unlinked-window-renamed" => TmuxEvent::WindowRenamed,
        b"%pane-mode-changed" => TmuxEvent::PaneMode,
        b"%sessions-changed" | b"%session-changed" | b"%session-renamed" | b"%session-window-changed" => {
            TmuxEvent::SessionsChanged
        }
        b"%exit" => TmuxEvent::Exit,
        _ => return None,
    };
    Some(Frame::Event(event))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way of cutting the stream into two reads gives the same frames.
    fn check(stream: &str, expected: &[Frame]) {
        for cut in 0..=stream.len() {
            let (mut cutter, mut frames) = (Framer::default(), Vec::new());
            cutter.push(&stream.as_bytes()[..cut], &mut frames);
            cutter.push(&stream.as_bytes()[cut..], &mut frames);
            assert_eq!(frames, expected, "cut at {cut} of {stream:?}");
        }
    }

    fn reply(ok: bool, body: &str) -> Frame {
        Frame::Reply { ours: true, ok, body: body.as_bytes().to_vec() }
    }

    #[test]
    fn replies_and_notifications_are_told_apart() {
        check(
            "%begin 1 5 1\na\n\n%end 1 5 1\n%window-add @3\n%begin 1 6 1\nno pane\n%error 1 6 1\n",
            &[reply(true, "a\n\n"), Frame::Event(TmuxEvent::WindowAdded), reply(false, "no pane\n")],
        );
    }

    #[test]
    fn a_window_that_closes_in_the_attached_session_counts_too() {
        check(
            "%unlinked-window-close @1\n%layout-change @1 x\n%exit\n",
            &[Frame::Event(TmuxEvent::WindowClosed), Frame::Event(TmuxEvent::Exit)],
        );
    }

    #[test]
    fn the_attach_is_no_reply_to_us() {
        check("%begin 1 5 0\n%end 1 5 0\n", &[Frame::Reply { ours: false, ok: true, body: Vec::new() }]);
    }

    #[test]
    fn text_that_looks_like_tmux_inside_a_block_is_text() {
        let body = "%end 1 6 1\n%begin 2 9 1\n%exit\n%end 1 5\n%end 1 5 1 1\n";
        check(&format!("%begin 1 5 1\n{body}%end 1 5 1\n"), &[reply(true, body)]);
    }

    #[test]
    fn a_pane_that_ends_its_own_block_is_found_out() {
        let broken = "an end without a beginning";
        check("%begin 1 5 1\nx\n%end 1 5 1\n%end 1 5 1\n", &[reply(true, "x\n"), Frame::Broken(broken)]);
        let twice = Frame::Broken("a block ended twice: a pane imitates tmux");
        check("%begin 1 5 1\nx\n%end 1 5 1\n%begin 1 6 1\n%end 1 5 1\n", &[reply(true, "x\n"), twice]);
        check("%begin 1 5 1\n%end 1 5 1\nrest\n", &[reply(true, ""), Frame::Broken("text outside a block")]);
        check(
            "%begin 1 5 1\n%end 1 5 1\n%begin 1 5 1\n",
            &[reply(true, ""), Frame::Broken("block numbers run backwards")],
        );
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
            let mut frames = Vec::new();
            Framer::default().push(&bytes, &mut frames);
        }
    }
}
