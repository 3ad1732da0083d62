//! `ng demo agent`: a small program that behaves like a coding agent in a terminal, for trials without an account and
//! as the receiver in delivery tests.
//!
//! [`agent`](self) decides (a state machine without input or output), `draw` shows it, and this file runs the loop:
//! keys, commands and time in, effects out. It looks like Claude Code 2.1.332 where a watcher looks. It asks for
//! nothing and spends nothing, and uses no processor time while nothing happens.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::logic::time::Now;
use crate::sys::clock::Clock;
use crate::sys::files::{self, Durability};
use crate::sys::{child, terminal};

mod acks;
mod agent;
mod composer;
mod control;
mod dialog;
mod draw;
mod keys;
mod records;

pub(crate) use dialog::Kind as DialogKind;

use acks::Ack;
use agent::{Agent, Effect};
use keys::Decoder;
use records::{Hook, Record, Session};

/// How long an Escape waits for the rest of a sequence.
const ESCAPE_WAIT: Duration = Duration::from_millis(40);
/// How long a hook or an acting command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(20);
/// Jobs (hooks, records, commands) that may wait.
const JOBS: usize = 256;

/// What a demo agent plays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// Reads reports; with `act` settles the decisions in them.
    Orchestrator,
    /// Has finished its work.
    #[default]
    Idle,
    /// Works.
    Busy,
    /// Rings now and then.
    Bell,
    /// Waits for a person's permission.
    Decision,
}

impl Role {
    /// Names as the switch spells them.
    pub(crate) const NAMES: [(&'static str, Self); 5] = [
        ("bell", Self::Bell),
        ("busy", Self::Busy),
        ("decision", Self::Decision),
        ("idle", Self::Idle),
        ("orchestrator", Self::Orchestrator),
    ];

    /// The role with this name.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
    }
}

/// How one demo agent behaves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// What it plays.
    pub(crate) role: Role,
    /// Whether it runs the `decision-ack` commands of the reports it gets.
    pub(crate) act: bool,
    /// Root of the nexus whose `monitor/ng` it runs.
    pub(crate) root: PathBuf,
    /// Draw at the end of the scrollback, not on the alternate screen.
    pub(crate) inline: bool,
    /// An Enter this soon after a paste becomes a line break.
    pub(crate) enter_dead: Duration,
    /// How many Enters are ignored.
    pub(crate) drop_enter: u32,
    /// Vim keys, starting in normal mode.
    pub(crate) vim: bool,
    /// Begin with a turn that runs until told.
    pub(crate) busy: bool,
    /// Begin with a turn of this length.
    pub(crate) busy_for: Option<Duration>,
    /// A suggestion in the input row.
    pub(crate) ghost: Option<String>,
    /// Text in the input row.
    pub(crate) draft: Option<String>,
    /// Leave the terminal in line mode.
    pub(crate) canonical: bool,
    /// Do not ask for framed pastes.
    pub(crate) no_bracketed: bool,
    /// Fold long pastes.
    pub(crate) collapse: bool,
    /// Begin with this dialog.
    pub(crate) dialog: Option<DialogKind>,
    /// Where to log what is read and sent, as JSON lines.
    pub(crate) log: Option<PathBuf>,
    /// A pipe to read commands from; made if it is missing.
    pub(crate) control: Option<PathBuf>,
    /// Whom to tell what happens, as a real agent's hooks do.
    pub(crate) hooks: Option<HookTarget>,
    /// Session file to append to.
    pub(crate) transcript: Option<PathBuf>,
    /// Session id.
    pub(crate) session_id: String,
}

/// What `ng hook` is told on its command line.
#[derive(Clone, Debug)]
pub(crate) struct HookTarget {
    /// The `ng` program.
    pub(crate) program: PathBuf,
    /// Name of the window.
    pub(crate) window: String,
    /// The state directory.
    pub(crate) state_dir: PathBuf,
    /// Whether this is the target window.
    pub(crate) target: bool,
}

/// Something that happened outside.
#[derive(Debug)]
enum Event {
    /// Bytes from the terminal; empty at its end.
    Input(Vec<u8>),
    /// A line from the control pipe.
    Command(String),
    /// A `decision-ack` ended.
    AckEnded(Ack, Option<i32>, String),
}

/// Something that takes time and must happen in order.
#[derive(Debug)]
enum Job {
    Hook(Hook),
    Record(Record),
    Ack(Ack),
}

/// Runs a demo agent on this terminal until it is told to end. Returns its exit code.
///
/// Errors: no terminal on standard input; a control path that is something other than a pipe; a log that can't be
/// written.
pub(crate) fn run(options: Options) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the loop")?;
    let code = runtime.block_on(play(options));
    // A reading thread may be waiting for input that never comes.
    runtime.shutdown_background();
    code
}

async fn play(options: Options) -> anyhow::Result<u8> {
    let clock = Clock::System;
    let (events, mut inbox) = mpsc::channel(64);
    let (jobs, waiting_jobs) = mpsc::channel(JOBS);
    let mut terminated = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut hung_up = signal(SignalKind::hangup()).context("listening for SIGHUP")?;
    let mut interrupted = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    let mut resized = signal(SignalKind::window_change()).context("listening for SIGWINCH")?;

    let _control = match &options.control {
        Some(path) => Some(control_pipe(path, events.clone())?),
        None => None,
    };
    let mut screen = terminal::Terminal::open(!options.canonical, &enter_sequence(&options), &leave_sequence(&options))
        .context("opening the terminal; run `ng demo agent` in one, for instance a tmux pane")?;
    let input = events.clone();
    terminal::read_input(move |bytes| input.blocking_send(Event::Input(bytes)).is_ok());

    let worker = tokio::spawn(work(options.clone(), waiting_jobs, events));
    let mut log = Log { path: options.log.clone(), clock };
    log.write(json!({"event": "start", "pid": std::process::id(), "session_id": options.session_id}))?;

    let mut painter = draw::Painter::new(options.inline);
    let mut decoder = Decoder::default();
    let mut agent = Agent::start(options, clock.now().uptime);
    let code = loop {
        if let Some(code) = carry_out(&mut agent, &jobs, &mut screen, &mut log).await? {
            break code;
        }
        let now = clock.now().uptime;
        let frame = painter.frame(&agent, now, terminal::size());
        if screen.write(&frame).is_err() {
            break 0;
        }
        let escape = decoder.is_waiting().then_some(now + ESCAPE_WAIT);
        let deadline = [agent.next_deadline(now), escape].into_iter().flatten().min();
        let wait = deadline.map_or(Duration::MAX, |at| at.saturating_sub(now));
        tokio::select! {
            event = inbox.recv() => match event {
                None => break 0,
                Some(Event::Input(bytes)) if bytes.is_empty() => break 0,
                Some(Event::Input(bytes)) => {
                    log.write(json!({"event": "read", "bytes": bytes.escape_ascii().to_string()}))?;
                    for key in decoder.feed(&bytes) {
                        agent.key(key, clock.now().uptime);
                    }
                }
                Some(Event::Command(line)) => {
                    log.write(json!({"event": "control", "line": line}))?;
                    match control::parse(&line) {
                        Some(command) => agent.command(command, clock.now().uptime),
                        None => log.write(json!({"event": "control-unknown", "line": line}))?,
                    }
                }
                Some(Event::AckEnded(ack, code, output)) => agent.ack_ended(&ack, code, &output, clock.now().uptime),
            },
            () = tokio::time::sleep(wait), if deadline.is_some() => {
                let now = clock.now().uptime;
                if escape.is_some_and(|at| at <= now) {
                    for key in decoder.flush() {
                        agent.key(key, now);
                    }
                }
                agent.tick(now);
            }
            _ = resized.recv() => {}
            _ = terminated.recv() => break 0,
            _ = hung_up.recv() => break 0,
            _ = interrupted.recv() => break 0,
        }
    };
    log.write(json!({"event": "end", "code": code}))?;
    // What was already asked for is still told, within reason.
    drop(jobs);
    let _late = tokio::time::timeout(Duration::from_secs(2), worker).await;
    Ok(code)
}

/// Does what the agent asked for. Returns the exit code if it wants to end.
async fn carry_out(
    agent: &mut Agent,
    jobs: &mpsc::Sender<Job>,
    screen: &mut terminal::Terminal,
    log: &mut Log,
) -> anyhow::Result<Option<u8>> {
    let mut code = None;
    for effect in VecDeque::from(agent.take_effects()) {
        let job = match effect {
            Effect::Log(fields) => {
                log.write(fields)?;
                continue;
            }
            Effect::Bell => {
                let _gone = screen.write(b"\x07");
                continue;
            }
            Effect::Title(title) => {
                let title: String = title.chars().filter(|letter| !letter.is_control()).collect();
                let _gone = screen.write(format!("\x1b]2;{title}\x1b\\").as_bytes());
                continue;
            }
            Effect::Exit(wanted) => {
                code = Some(wanted);
                continue;
            }
            Effect::Hook(hook) => Job::Hook(hook),
            Effect::Record(record) => Job::Record(record),
            Effect::Ack(ack) => Job::Ack(ack),
        };
        jobs.send(job).await.context("the worker has ended")?;
    }
    Ok(code)
}

/// Carries out jobs one after the other.
async fn work(options: Options, mut jobs: mpsc::Receiver<Job>, events: mpsc::Sender<Event>) {
    let session = Session {
        id: options.session_id.clone(),
        transcript: options.transcript.as_deref().map(|path| path.display().to_string()).unwrap_or_default(),
        cwd: std::env::current_dir().map(|dir| dir.display().to_string()).unwrap_or_default(),
    };
    let mut number = 0;
    while let Some(job) = jobs.recv().await {
        match job {
            Job::Hook(hook) => {
                let Some(to) = &options.hooks else { continue };
                let mut args: Vec<&std::ffi::OsStr> = vec!["hook".as_ref(), hook.verb().as_ref()];
                args.extend(["--window".as_ref(), to.window.as_ref(), "--state".as_ref(), to.state_dir.as_os_str()]);
                if to.target {
                    args.push("--target".as_ref());
                }
                let payload = hook.payload(&session).to_string();
                // A hook never disturbs its agent; what it had to say is the hook's own business.
                let _unheard = child::run(&to.program, &args, payload.as_bytes(), COMMAND_LIMIT).await;
            }
            Job::Record(record) => {
                let Some(path) = &options.transcript else { continue };
                number += 1;
                let line = format!("{}\n", record.value(&session, Clock::System.now().at, number));
                let _unwritable = files::append_lines(path, &line, Durability::Hint);
            }
            Job::Ack(ack) => {
                let program = options.root.join("monitor/ng");
                let args: [&std::ffi::OsStr; 3] =
                    ["decision-ack".as_ref(), ack.window.as_ref(), ack.fingerprint.as_ref()];
                let (code, output) = match child::run(&program, &args, b"", COMMAND_LIMIT).await {
                    Ok(ended) => (ended.code, ended.output),
                    Err(error) => (None, format!("{}: {error}", program.display())),
                };
                let sent = events.send(Event::AckEnded(ack, code, output)).await;
                if sent.is_err() {
                    return;
                }
            }
        }
    }
}

/// The control pipe, removed at the end if it was made here.
#[derive(Debug)]
struct ControlPipe {
    made: Option<PathBuf>,
}

impl Drop for ControlPipe {
    fn drop(&mut self) {
        if let Some(path) = &self.made {
            let _gone = std::fs::remove_file(path);
        }
    }
}

/// Opens (and makes) the control pipe, and reads lines from it.
fn control_pipe(path: &Path, events: mpsc::Sender<Event>) -> anyhow::Result<ControlPipe> {
    let made = terminal::make_pipe(path).with_context(|| format!("opening the control pipe {}", path.display()))?;
    terminal::read_lines(path, move |line| events.blocking_send(Event::Command(line)).is_ok())
        .with_context(|| format!("reading the control pipe {}", path.display()))?;
    Ok(ControlPipe { made: made.then(|| path.to_owned()) })
}

/// What is told to the terminal at the start.
fn enter_sequence(options: &Options) -> Vec<u8> {
    let mut out = Vec::new();
    if !options.inline {
        out.extend_from_slice(b"\x1b[?1049h\x1b[2J\x1b[H");
    }
    if !options.no_bracketed {
        out.extend_from_slice(b"\x1b[?2004h");
    }
    out.extend_from_slice(b"\x1b[?25l");
    out
}

/// What is told to the terminal at the end.
fn leave_sequence(options: &Options) -> Vec<u8> {
    let mut out = b"\x1b[0m".to_vec();
    if !options.no_bracketed {
        out.extend_from_slice(b"\x1b[?2004l");
    }
    out.extend_from_slice(if options.inline { b"\r\n" } else { b"\x1b[?1049l" });
    out.extend_from_slice(b"\x1b]2;\x1b\\\x1b[?25h");
    out
}

/// The log of what was read and done.
#[derive(Debug)]
struct Log {
    path: Option<PathBuf>,
    clock: Clock,
}

impl Log {
    fn write(&mut self, mut fields: Value) -> anyhow::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let Now { at, .. } = self.clock.now();
        if let Value::Object(fields) = &mut fields {
            fields.insert("at_ms".into(), at.millis().into());
        }
        files::append_lines(path, &format!("{fields}\n"), Durability::Hint)
            .with_context(|| format!("writing the log {}", path.display()))
    }
}
