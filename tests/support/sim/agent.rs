//! A simulated agent: its box, its dialog, its turns and its queue. It does not draw and knows no tmux.

use std::collections::VecDeque;
use std::time::Duration;

/// A paste with more line breaks than this is folded, as one with more characters than [`FOLD_CHARS`].
const FOLD_BREAKS: usize = 2;
const FOLD_CHARS: usize = 800;
/// How much of the conversation is kept for the screen.
const MAX_ENTRIES: usize = 6;

/// Something in the box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// What is sent for it.
    pub(crate) text: String,
    /// What is drawn for it, where that differs.
    pub(crate) chip: Option<String>,
    /// The watcher put it there.
    pub(crate) is_ours: bool,
}

/// A dialog in place of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialog {
    /// May a command run?
    Permission,
    /// A question with options.
    Ask,
}

/// One piece of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A prompt.
    User(String),
    /// An answer.
    Said(String),
    /// The line that closes a turn.
    Done(String),
}

/// What happened to an agent, for its hooks and its session file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Did {
    /// A prompt was sent.
    Sent {
        /// The whole text.
        text: String,
        /// A turn was running, so it waits in the queue.
        queued: bool,
    },
    /// A queued prompt became a turn.
    TookUp(String),
    /// The turn ended; `more` when a queued prompt follows.
    TurnEnded {
        /// Another turn begins at once.
        more: bool,
    },
    /// Its dialog was answered.
    Answered(Dialog),
}

/// The agent. Times are those of the machine's steady clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agent {
    pieces: Vec<Piece>,
    pastes: u32,
    /// Until then the last paste is not drawn yet.
    unseen_until: Option<Duration>,
    pasted_at: Option<Duration>,
    dialog: Option<Dialog>,
    queue: VecDeque<String>,
    entries: VecDeque<Entry>,
    /// When the running turn began and when it ends.
    turn: Option<(Duration, Duration)>,
    /// How long each turn takes.
    turn_takes: Duration,
    did: Vec<Did>,
    /// When it last stopped or began doing anything that a person would notice.
    pub(crate) changed: Duration,
}

impl Agent {
    /// A fresh one whose turns take this long.
    pub(crate) fn new(turn_takes: Duration) -> Self {
        Self { turn_takes, ..Self::default() }
    }

    /// Lets later turns take this long.
    pub(crate) fn set_turn(&mut self, takes: Duration) {
        self.turn_takes = takes;
    }

    /// What is in the box.
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// What of it is drawn.
    pub(crate) fn drawn(&self, now: Duration) -> &[Piece] {
        match self.unseen_until {
            Some(until) if now < until => &self.pieces[..self.pieces.len().saturating_sub(1)],
            _ => &self.pieces,
        }
    }

    /// The dialog that is open.
    pub(crate) fn dialog(&self) -> Option<Dialog> {
        self.dialog
    }

    /// What waits in the queue.
    pub(crate) fn queue(&self) -> &VecDeque<String> {
        &self.queue
    }

    /// The end of the conversation.
    pub(crate) fn entries(&self) -> &VecDeque<Entry> {
        &self.entries
    }

    /// When the running turn began.
    pub(crate) fn busy_since(&self) -> Option<Duration> {
        self.turn.map(|(began, _)| began)
    }

    /// Whether it has nothing to do and nothing in its box.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.turn.is_none() && self.dialog.is_none() && self.pieces.is_empty() && self.queue.is_empty()
    }

    /// When it changes by itself next.
    pub(crate) fn next_change(&self) -> Option<Duration> {
        let turn = self.turn.filter(|_| self.dialog.is_none()).map(|(_, end)| end);
        [turn, self.unseen_until].into_iter().flatten().min()
    }

    /// What it did since the last call.
    pub(crate) fn take_deeds(&mut self) -> Vec<Did> {
        std::mem::take(&mut self.did)
    }

    /// Lets the time pass; whether its screen changed.
    pub(crate) fn pass(&mut self, now: Duration) -> bool {
        let mut changed = self.unseen_until.is_some_and(|until| now >= until);
        if changed {
            self.unseen_until = None;
        }
        while let Some((_, end)) = self.turn.filter(|(_, end)| *end <= now && self.dialog.is_none()) {
            changed = true;
            self.turn = None;
            self.changed = end;
            self.say(Entry::Said("Done.".into()));
            self.say(Entry::Done("Brewed for 3s".into()));
            let next = self.queue.pop_front();
            self.did.push(Did::TurnEnded { more: next.is_some() });
            if let Some(next) = next {
                self.say(Entry::User(next.clone()));
                self.did.push(Did::TookUp(next));
                self.start_turn(end);
            }
        }
        changed
    }

    /// Begins a turn.
    pub(crate) fn start_turn(&mut self, now: Duration) {
        self.turn = Some((now, now + self.turn_takes));
        self.changed = now;
    }

    /// Ends the running turn at once.
    pub(crate) fn end_turn(&mut self, now: Duration) {
        if let Some((_, end)) = &mut self.turn {
            *end = now;
        }
        self.pass(now);
    }

    /// A dialog opens in the place of the box; the turn stands still.
    pub(crate) fn ask(&mut self, dialog: Dialog, now: Duration) {
        self.dialog = Some(dialog);
        self.changed = now;
    }

    /// Somebody types, before or behind what is there. A dialog takes no text.
    pub(crate) fn write(&mut self, text: &str, in_front: bool) {
        if self.dialog.is_some() {
            return;
        }
        self.unseen_until = None;
        let piece = Piece { text: text.to_owned(), chip: None, is_ours: false };
        self.pieces.insert(if in_front { 0 } else { self.pieces.len() }, piece);
    }

    /// A paste, drawn after this time. A dialog swallows it.
    pub(crate) fn paste(&mut self, text: &str, is_ours: bool, now: Duration, echo: Duration) {
        if self.dialog.is_some() {
            return;
        }
        let breaks = text.matches('\n').count();
        let chip = (breaks > FOLD_BREAKS || text.chars().count() > FOLD_CHARS).then(|| {
            self.pastes += 1;
            match breaks {
                0 => format!("[Pasted text #{}]", self.pastes),
                _ => format!("[Pasted text #{} +{breaks} lines]", self.pastes),
            }
        });
        self.pieces.push(Piece { text: text.to_owned(), chip, is_ours });
        self.unseen_until = (!echo.is_zero()).then(|| now + echo);
        self.pasted_at = Some(now);
    }

    /// How long ago the last paste was.
    pub(crate) fn since_paste(&self, now: Duration) -> Duration {
        self.pasted_at.map_or(Duration::MAX, |at| now.saturating_sub(at))
    }

    /// Empties the box.
    pub(crate) fn clear(&mut self) {
        self.unseen_until = None;
        self.pieces.clear();
    }

    /// The last character goes.
    pub(crate) fn backspace(&mut self) {
        self.unseen_until = None;
        if let Some(last) = self.pieces.last_mut() {
            last.text.pop();
            if last.text.is_empty() || last.chip.is_some() {
                self.pieces.pop();
            }
        }
    }

    /// An Enter that the agent takes.
    pub(crate) fn enter(&mut self, now: Duration) {
        if let Some(dialog) = self.dialog.take() {
            // The turn goes on where it stood.
            if let Some((began, end)) = self.turn {
                self.turn = Some((began, end.max(now + self.turn_takes / 2)));
            }
            self.changed = now;
            self.did.push(Did::Answered(dialog));
            return;
        }
        self.unseen_until = None;
        if self.pieces.is_empty() {
            return;
        }
        let text: String = self.pieces.drain(..).map(|piece| piece.text).collect();
        let queued = self.turn.is_some();
        self.did.push(Did::Sent { text: text.clone(), queued });
        if queued {
            self.queue.push_back(text);
        } else {
            self.say(Entry::User(text));
            self.start_turn(now);
        }
    }

    fn say(&mut self, entry: Entry) {
        self.entries.push_back(entry);
        if self.entries.len() > MAX_ENTRIES {
            self.entries.pop_front();
        }
    }
}
