//! The demo agent itself: a state machine that is told keys, commands and the time, and returns what to do. It reads
//! no clock and does no input or output, so its tests turn the time by hand.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use super::acks::{self, Ack};
use super::composer::{Composer, Submission, Vim};
use super::control::Command;
use super::dialog::{Answer, Dialog, Kind};
use super::keys::Key;
use super::records::{Hook, Record};
use super::{Options, Role};

/// How long an ordinary answer takes.
const ANSWER_AFTER: Duration = Duration::from_millis(400);
/// How long a permission dialog stands before the person is notified.
// Seen: 6.0 to 6.4 s after PermissionRequest in every version.
const NOTIFY_AFTER: Duration = Duration::from_secs(6);
/// When role `bell` rings first, and how often after that.
const FIRST_BELL: Duration = Duration::from_secs(2);
const NEXT_BELL: Duration = Duration::from_secs(60);
/// How long Ctrl-C on an empty row is remembered.
const EXIT_HINT: Duration = Duration::from_secs(2);
/// Transcript pieces that are kept.
const KEEP: usize = 400;
/// What a permission dialog asks for.
pub(super) const DEMO_COMMAND: &str = "rm -rf build";

/// One piece of the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A message to the agent.
    User(String),
    /// The agent's words.
    Said(String),
    /// What came of a tool call.
    Result(String),
    /// A finished turn.
    Done(String),
}

/// Something for the outside to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    /// Append to the log.
    Log(Value),
    /// Run a hook.
    Hook(Hook),
    /// Append to the session file.
    Record(Record),
    /// Run `ng decision-ack`.
    Ack(Ack),
    /// Ring.
    Bell,
    /// Set the title.
    Title(String),
    /// End the program.
    Exit(u8),
}

/// A turn that is running.
#[derive(Debug)]
struct Turn {
    since: Duration,
    /// When it ends by itself; `None`: when told.
    until: Option<Duration>,
    /// What is said at its end.
    /// What is said at its end.
    answer: String,
    /// Commands that it waits for.
    acks_open: usize,
}

/// The state of a demo agent.
#[derive(Debug)]
pub(super) struct Agent {
    options: Options,
    composer: Composer,
    entries: VecDeque<Entry>,
    dropped: usize,
    queue: VecDeque<Submission>,
    turn: Option<Turn>,
    dialog: Option<Dialog>,
    notify_at: Option<Duration>,
    bell_at: Option<Duration>,
    exit_hint_until: Option<Duration>,
    last_paste: Option<Duration>,
    enters_to_drop: u32,
    acked: Vec<Ack>,
    effects: Vec<Effect>,
}

impl Agent {
    /// Starts one. Ask [`Self::take_effects`] for what it did at once.
    pub(super) fn start(options: Options, now: Duration) -> Self {
        let mut composer = Composer::new(options.collapse, options.vim);
        composer.ghost.clone_from(&options.ghost);
        if let Some(draft) = &options.draft {
            composer.insert(draft);
        }
        let mut agent = Self {
            composer,
            entries: VecDeque::new(),
            dropped: 0,
            queue: VecDeque::new(),
            turn: None,
            dialog: None,
            notify_at: None,
            bell_at: (options.role == Role::Bell).then_some(now + FIRST_BELL),
            exit_hint_until: None,
            last_paste: None,
            enters_to_drop: options.drop_enter,
            acked: Vec::new(),
            effects: Vec::new(),
            options,
        };
        agent.effects.push(Effect::Hook(Hook::SessionStart));
        agent.effects.push(Effect::Title("✳ Demo agent".into()));
        agent.play_role(now);
        agent
    }

    fn play_role(&mut self, now: Duration) {
        if self.options.role == Role::Idle || self.options.role == Role::Bell {
            self.push(Entry::User("tidy the parser".into()));
            self.push(Entry::Said("The parser is tidy; its tests pass.".into()));
            self.push(Entry::Done("Worked for 3m 12s".into()));
        }
        if self.options.busy || self.options.busy_for.is_some() || self.options.role == Role::Busy {
            let until = self.options.busy_for.map(|length| now + length);
            self.push(Entry::User("run the long job".into()));
            self.effects.push(Effect::Hook(Hook::UserPromptSubmit("run the long job".into())));
            self.begin_turn(now, until, "The long job is done.".into());
        }
        let opened = self.options.dialog.or((self.options.role == Role::Decision).then_some(Kind::Permission));
        if let Some(kind) = opened {
            self.open_dialog(kind, now);
        }
    }

    /// What is to be done, in order.
    pub(super) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// When something happens next without anyone's doing.
    pub(super) fn next_deadline(&self, now: Duration) -> Option<Duration> {
        let turn = self.turn.as_ref().filter(|turn| turn.acks_open == 0).and_then(|turn| turn.until);
        // The spinner counts whole seconds.
        let tick = self.turn.as_ref().map(|turn| {
            let passed = now.saturating_sub(turn.since).as_secs();
            turn.since + Duration::from_secs(passed + 1)
        });
        [turn, tick, self.notify_at, self.bell_at, self.exit_hint_until].into_iter().flatten().min()
    }

    /// The time is `now`. Calling it early or twice changes nothing.
    pub(super) fn tick(&mut self, now: Duration) {
        let due = |at: Option<Duration>| at.is_some_and(|at| at <= now);
        if due(self.exit_hint_until) {
            self.exit_hint_until = None;
        }
        if due(self.bell_at) {
            self.bell_at = Some(now + NEXT_BELL);
            self.effects.push(Effect::Bell);
        }
        if due(self.notify_at) {
            self.notify_at = None;
            self.effects.push(Effect::Hook(Hook::Notification("permission_prompt", "Claude needs your permission")));
        }
        if self.turn.as_ref().is_some_and(|turn| turn.acks_open == 0 && due(turn.until)) {
            self.end_turn(now);
        }
    }

    /// A key was pressed.
    pub(super) fn key(&mut self, key: Key, now: Duration) {
        if let Some(dialog) = &mut self.dialog {
            let kind = dialog.kind;
            if let Some(answer) = dialog.key(&key, now) {
                self.answered(kind, &answer, &key, now);
            }
            return;
        }
        match key {
            Key::Enter => self.enter(now),
            Key::Newline if self.options.canonical => self.enter(now),
            Key::Newline => self.composer.insert("\n"),
            Key::Paste(text) => {
                self.last_paste = Some(now);
                self.composer.paste(&text);
            }
            Key::Char(letter) => self.composer.letter(letter),
            Key::Backspace => self.composer.backspace(),
            Key::Left => self.composer.left(),
            Key::Right => self.composer.right(),
            Key::Tab => {
                if self.composer.text().is_empty()
                    && let Some(ghost) = self.composer.ghost.take()
                {
                    self.composer.set(&ghost);
                }
            }
            Key::Up => {
                if self.composer.text().is_empty() {
                    let texts: Vec<String> = self.queue.drain(..).map(|waiting| waiting.shown).collect();
                    self.composer.set(&texts.join("\n"));
                }
            }
            Key::Ctrl('u') => self.composer.delete_line_left(),
            Key::Ctrl('c') => self.ctrl_c(now),
            Key::Escape => self.escape(now),
            Key::Down | Key::Ctrl(_) | Key::Other => {}
        }
    }

    fn enter(&mut self, now: Duration) {
        if self.enters_to_drop > 0 {
            self.enters_to_drop -= 1;
            self.log("enter-dropped", json!({}));
            return;
        }
        let dead = self.last_paste.is_some_and(|at| now.saturating_sub(at) < self.options.enter_dead);
        if dead {
            self.composer.insert("\n");
            self.log("enter-became-newline", json!({}));
            return;
        }
        if self.composer.text().trim() == "/exit" {
            self.effects.push(Effect::Exit(0));
            return;
        }
        let Some(submission) = self.composer.submit() else { return };
        let queued = self.turn.is_some();
        self.log("submit", json!({"text": submission.shown, "sent": submission.sent, "queued": queued}));
        self.effects.push(Effect::Hook(Hook::UserPromptSubmit(submission.sent.clone())));
        if queued {
            self.effects.push(Effect::Record(Record::Enqueue(submission.sent.clone())));
            self.queue.push_back(submission);
        } else {
            self.take_up(submission, false, now);
        }
    }

    /// Begins the turn that answers a message.
    fn take_up(&mut self, submission: Submission, queued: bool, now: Duration) {
        self.effects.push(Effect::Record(Record::User { text: submission.sent, queued }));
        let wanted = if self.options.act { acks::find(&submission.shown, &self.options.root) } else { Vec::new() };
        let wanted: Vec<Ack> = wanted.into_iter().filter(|ack| !self.acked.contains(ack)).collect();
        let lines = submission.shown.lines().count();
        let answer = match (self.options.role, wanted.len()) {
            (Role::Orchestrator, 0) => format!("Read the {lines} lines. Nothing to decide."),
            (Role::Orchestrator, acks) => format!("Read the {lines} lines and settled {acks} of the decisions."),
            _ => format!("Read the {lines} lines."),
        };
        self.push(Entry::User(submission.shown));
        self.begin_turn(now, Some(now + ANSWER_AFTER), answer);
        if let Some(turn) = &mut self.turn {
            turn.acks_open = wanted.len();
        }
        for ack in wanted {
            self.acked.push(ack.clone());
            self.effects.push(Effect::Ack(ack));
        }
    }

    /// A `decision-ack` ended.
    pub(super) fn ack_ended(&mut self, ack: &Ack, code: Option<i32>, output: &str, now: Duration) {
        self.push(Entry::Said(format!("monitor/ng decision-ack {} {}", ack.window, ack.fingerprint)));
        let first = output.lines().next().unwrap_or("(no output)");
        let code_text = code.map_or("did not end".to_owned(), |code| format!("exit {code}"));
        self.push(Entry::Result(format!("{first} ({code_text})")));
        self.log("ack", json!({"window": ack.window, "fingerprint": ack.fingerprint, "code": code, "output": output}));
        if code != Some(0) {
            self.acked.retain(|known| known != ack);
        }
        if let Some(turn) = &mut self.turn {
            turn.acks_open = turn.acks_open.saturating_sub(1);
        }
        self.tick(now);
    }

    fn begin_turn(&mut self, now: Duration, until: Option<Duration>, answer: String) {
        self.turn = Some(Turn { since: now, until, answer, acks_open: 0 });
    }

    fn end_turn(&mut self, now: Duration) {
        let Some(turn) = self.turn.take() else { return };
        let seconds = now.saturating_sub(turn.since).as_secs();
        self.effects.push(Effect::Record(Record::Assistant(turn.answer.clone())));
        self.effects.push(Effect::Record(Record::TurnEnd));
        self.effects.push(Effect::Hook(Hook::Stop(turn.answer.clone())));
        self.push(Entry::Said(turn.answer));
        self.push(Entry::Done(format!("Worked for {}", length(seconds))));
        if let Some(next) = self.queue.pop_front() {
            self.log("taken-up", json!({"text": next.shown}));
            self.effects.push(Effect::Record(Record::Dequeue));
            self.take_up(next, true, now);
        }
    }

    fn escape(&mut self, now: Duration) {
        if self.composer.vim == Some(Vim::Insert) {
            self.composer.vim = Some(Vim::Normal);
            self.composer.left();
        } else if self.turn.take().is_some() {
            // As in the real program: an interrupt fires no hook; only the session file tells.
            self.effects.push(Effect::Record(Record::Interrupted));
            self.push(Entry::Result("Interrupted · What should the agent do instead?".into()));
            if let Some(next) = self.queue.pop_front() {
                self.effects.push(Effect::Record(Record::Dequeue));
                self.take_up(next, true, now);
            }
        }
    }

    fn ctrl_c(&mut self, now: Duration) {
        if !self.composer.text().is_empty() {
            self.composer.clear();
        } else if self.exit_hint_until.is_some() {
            self.effects.push(Effect::Exit(0));
        } else {
            self.exit_hint_until = Some(now + EXIT_HINT);
        }
    }

    fn open_dialog(&mut self, kind: Kind, now: Duration) {
        self.dialog = Some(Dialog::open(kind, now));
        if kind == Kind::Permission {
            self.push(Entry::Said("I need to remove the build output.".into()));
            self.effects.push(Effect::Hook(Hook::PreToolUse(DEMO_COMMAND.into())));
            self.effects.push(Effect::Hook(Hook::PermissionRequest(DEMO_COMMAND.into())));
            self.notify_at = Some(now + NOTIFY_AFTER);
            if self.turn.is_none() {
                self.begin_turn(now, None, "The build output is gone.".into());
            }
        }
    }

    fn answered(&mut self, kind: Kind, answer: &Answer, key: &Key, now: Duration) {
        self.dialog = None;
        self.notify_at = None;
        let (option, label) = match answer {
            Answer::Chosen(number) => (*number, kind.options().get(number - 1).copied().unwrap_or("")),
            Answer::Typed(text) => (4, text.as_str()),
            Answer::Cancelled => (0, ""),
        };
        self.log("answer", json!({"dialog": kind.name(), "option": option, "label": label, "key": format!("{key:?}")}));
        match (kind, answer) {
            (Kind::Permission, Answer::Cancelled | Answer::Chosen(4)) => {
                self.turn = None;
                self.effects.push(Effect::Record(Record::Interrupted));
                self.push(Entry::Result("Declined".into()));
            }
            (Kind::Permission, _) => {
                self.effects.push(Effect::Hook(Hook::PostToolUse(DEMO_COMMAND.into())));
                self.push(Entry::Result("(No output)".into()));
                if let Some(turn) = &mut self.turn {
                    turn.until = Some(now + ANSWER_AFTER);
                }
            }
            (Kind::Trust, Answer::Chosen(1) | Answer::Cancelled) => self.effects.push(Effect::Exit(1)),
            (_, Answer::Cancelled) => self.push(Entry::Result("Cancelled".into())),
            (_, _) => self.push(Entry::Result(format!("→ {label}"))),
        }
    }

    /// A command from the control pipe.
    pub(super) fn command(&mut self, command: Command, now: Duration) {
        match command {
            Command::Busy(seconds) => {
                let until = seconds.map(|seconds| now + Duration::from_secs(seconds));
                self.begin_turn(now, until, "Done as told.".into());
            }
            Command::Idle => self.end_turn(now),
            Command::Draft(text) => self.composer.set(&text),
            Command::Ghost(text) => self.composer.ghost = (!text.is_empty()).then_some(text),
            Command::Dialog(kind) => self.open_dialog(kind, now),
            Command::Close => {
                if self.dialog.take().is_some_and(|dialog| dialog.kind == Kind::Permission) {
                    self.turn = None;
                }
                self.notify_at = None;
            }
            Command::Bell => self.effects.push(Effect::Bell),
            Command::Exit(code) => self.effects.push(Effect::Exit(code)),
            Command::Say(text) => {
                self.effects.push(Effect::Record(Record::Assistant(text.clone())));
                self.push(Entry::Said(text));
            }
            Command::Title(text) => self.effects.push(Effect::Title(text)),
        }
    }

    fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
        if self.entries.len() > KEEP {
            self.entries.pop_front();
            self.dropped += 1;
        }
    }

    fn log(&mut self, event: &str, mut fields: Value) {
        if let Value::Object(fields) = &mut fields {
            fields.insert("event".into(), event.into());
        }
        self.effects.push(Effect::Log(fields));
    }

    /// The transcript, oldest first.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// How many pieces were dropped from its beginning.
    pub(super) fn dropped(&self) -> usize {
        self.dropped
    }

    /// Messages that wait for the turn to end.
    pub(super) fn queued(&self) -> impl Iterator<Item = &str> {
        self.queue.iter().map(|waiting| waiting.shown.as_str())
    }

    /// Since when a turn runs.
    pub(super) fn busy_since(&self) -> Option<Duration> {
        self.turn.as_ref().map(|turn| turn.since)
    }

    /// The open dialog.
    pub(super) fn dialog(&self) -> Option<&Dialog> {
        self.dialog.as_ref()
    }

    /// The input row.
    pub(super) fn composer(&self) -> &Composer {
        &self.composer
    }

    /// Whether Ctrl-C was just pressed on an empty row.
    pub(super) fn exit_hint(&self) -> bool {
        self.exit_hint_until.is_some()
    }
}

/// `12s`, `3m 12s`.
fn length(seconds: u64) -> String {
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m {}s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn options(role: Role) -> Options {
        Options { role, root: PathBuf::from("/srv/nexus"), ..Options::default() }
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Types keys one second after the start; returns the texts that were submitted by then.
    fn check(options: Options, keys: &[Key], submitted: &[&str]) -> Agent {
        let mut agent = Agent::start(options, ms(0));
        for key in keys {
            agent.key(key.clone(), ms(1000));
        }
        let texts: Vec<String> = agent.effects.iter().filter_map(submitted_text).collect();
        assert_eq!(texts, submitted, "{keys:?}");
        agent
    }

    fn submitted_text(effect: &Effect) -> Option<String> {
        match effect {
            Effect::Log(fields) if fields["event"] == "submit" => fields["text"].as_str().map(str::to_owned),
            _ => None,
        }
    }

    fn paste(text: &str) -> Key {
        Key::Paste(text.into())
    }

    #[test]
    fn enter_sends_what_the_row_holds() {
        check(options(Role::Idle), &[paste("1\n2\n3\n4"), Key::Enter], &["1\n2\n3\n4"]);
        check(options(Role::Idle), &[Key::Enter], &[]);
        check(options(Role::Idle), &[paste("a"), Key::Newline, Key::Char('b'), Key::Enter], &["a\nb"]);
        let ghost = Options { ghost: Some("run the tests".into()), ..options(Role::Idle) };
        check(ghost.clone(), &[Key::Enter], &[]);
        check(ghost, &[Key::Tab, Key::Enter], &["run the tests"]);
        let draft = Options { draft: Some("old ".into()), ..options(Role::Idle) };
        check(draft, &[paste("new"), Key::Enter], &["old new"]);
    }

    #[test]
    fn faulty_enters_send_nothing() {
        let drop = Options { drop_enter: 1, ..options(Role::Idle) };
        check(drop.clone(), &[paste("a"), Key::Enter], &[]);
        check(drop, &[paste("a"), Key::Enter, Key::Enter], &["a"]);
        let dead = Options { enter_dead: ms(50), ..options(Role::Idle) };
        let mut agent = check(dead, &[paste("a"), Key::Enter], &[]);
        assert_eq!(agent.composer().text(), "a\n");
        agent.key(Key::Enter, ms(1100));
        assert_eq!(agent.effects.iter().filter_map(submitted_text).count(), 1, "the row lives again after 50 ms");
    }

    #[test]
    fn a_busy_agent_queues_and_takes_up_later() {
        let mut agent = check(options(Role::Busy), &[paste("later"), Key::Enter], &["later"]);
        assert_eq!(agent.queued().collect::<Vec<_>>(), ["later"]);
        assert!(agent.take_effects().contains(&Effect::Record(Record::Enqueue("later".into()))));
        agent.command(Command::Idle, ms(2000));
        assert_eq!(agent.queued().count(), 0);
        let effects = agent.take_effects();
        let dequeued = effects.iter().position(|effect| *effect == Effect::Record(Record::Dequeue));
        let user = Effect::Record(Record::User { text: "later".into(), queued: true });
        assert!(dequeued < effects.iter().position(|effect| *effect == user), "{effects:?}");
        assert!(agent.busy_since().is_some(), "the queued message is being answered");
        agent.tick(ms(2400));
        assert!(agent.busy_since().is_none());
    }

    #[test]
    fn a_decision_raises_its_hooks_and_notifies_after_six_seconds() {
        let mut agent = Agent::start(options(Role::Decision), ms(0));
        let hooks = |effects: Vec<Effect>| -> Vec<&'static str> {
            effects
                .iter()
                .filter_map(|effect| match effect {
                    Effect::Hook(hook) => Some(hook.name()),
                    _ => None,
                })
                .collect()
        };
        assert_eq!(hooks(agent.take_effects()), ["SessionStart", "PreToolUse", "PermissionRequest"]);
        agent.tick(ms(5999));
        assert_eq!(hooks(agent.take_effects()), [""; 0]);
        agent.tick(ms(6000));
        assert_eq!(hooks(agent.take_effects()), ["Notification"]);
        assert!(agent.dialog().is_some(), "only a person closes the dialog");
    }

    #[test]
    fn an_orchestrator_acks_each_decision_once() {
        let acting = Options { act: true, ..options(Role::Orchestrator) };
        let row = "ack=monitor/ng decision-ack w3 0a1b2c3d4e5f";
        let mut agent = check(acting, &[paste(row), Key::Enter], &[row]);
        let ack = Ack { window: "w3".into(), fingerprint: "0a1b2c3d4e5f".into() };
        assert!(agent.take_effects().contains(&Effect::Ack(ack.clone())));
        agent.tick(ms(5000));
        assert!(agent.busy_since().is_some(), "the turn waits for the command");
        agent.ack_ended(&ack, Some(0), "acked", ms(5000));
        assert!(agent.busy_since().is_none());
        agent.key(paste(row), ms(6000));
        agent.key(Key::Enter, ms(6000));
        assert!(!agent.take_effects().contains(&Effect::Ack(ack)), "what was acked is not acked again");
    }

    #[test]
    fn an_idle_agent_has_nothing_to_wake_for() {
        let agent = Agent::start(options(Role::Idle), ms(0));
        assert_eq!(agent.next_deadline(ms(10)), None);
    }
}
