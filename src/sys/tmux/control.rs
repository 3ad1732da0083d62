//! The persistent reader: one control-mode client that answers any number of questions without starting a process.
//!
//! It attaches to a session that exists, asks for no output, and leaves size and environment alone. It is closed by
//! the end of its input and never by a signal, since a killed client has taken servers down with it. Only questions go
//! this way; nothing that acts.
//!
//! Should this process die with replies unread, a plain pipe would break under tmux's hands, which then waits for ever
//! to get rid of them: a client that stays in the list, a session that stays attached, a server that cannot end (seen on
//! 3.3a). So tmux is given an end of the pipe that reads as well as writes: it can't break, and it is wide enough for
//! all replies that are ever outstanding.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tmux_interface::AttachSession;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, ChildStdin};
use tokio::sync::{broadcast, mpsc};

use crate::logic::ids::SessionId;
use crate::sys::seed::mark;

use super::batch::{Answer, Ask, Dialogue, print, quoted, words};
use super::framer::{Frame, Framer, TmuxEvent};
use super::oneshot::{Socket, complaint_error, program, spawn_error};
use super::parse::WindowRow;
use super::{TmuxError, WindowId};

/// Replies outstanding at once. tmux keeps unread replies in memory without bound (issue 5553); so many captures of large
/// screens fit into the pipe, and tmux never waits for us meanwhile.
const IN_FLIGHT: usize = 16;

/// Room in the pipe, the most that anybody may ask of Linux by default.
const PIPE_BYTES: usize = 1 << 20;

/// What the reading task hands over.
#[derive(Debug)]
enum Incoming {
    /// The attach was answered.
    Attached(Answer),
    /// A line of ours was answered.
    Reply(Answer),
    /// The stream makes no sense.
    Broken(&'static str),
    /// The client ended, with these words.
    Ended(String),
}

/// An attached control client. Dropping it closes its input, which ends it.
#[derive(Debug)]
pub(super) struct Control {
    stdin: ChildStdin,
    incoming: mpsc::UnboundedReceiver<Incoming>,
}

impl Control {
    /// Starts a client on `session` and waits until it is attached.
    ///
    /// `live` counts clients whose process has not ended yet.
    /// Errors: as tmux's words say. The caller sets the deadline.
    pub(super) async fn open(
        socket: &Socket,
        session: SessionId,
        events: &broadcast::Sender<TmuxEvent>,
        live: &Arc<AtomicUsize>,
    ) -> Result<Self, TmuxError> {
        const DOING: &str = "attaching a control client";
        let mut attach = AttachSession::new().not_update_env().build();
        // The builder's own flag list is of a later version; these two exist from 3.2.
        attach.push_option("-f", "no-output,ignore-size");
        attach.push_option("-t", session.to_string());
        let (stdout, writer) = reply_pipe().map_err(|why| io(DOING, &why.to_string()))?;
        let mut child = program(socket)
            .arg("-C")
            .args(words(&attach))
            .stdin(Stdio::piped())
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|why| spawn_error(&why, DOING))?;
        let stdin = child.stdin.take().ok_or_else(|| io(DOING, "no input pipe"))?;
        let (sender, incoming) = mpsc::unbounded_channel();
        live.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(read_and_reap(child, stdout, sender, events.clone(), Arc::clone(live)));
        let mut control = Self { stdin, incoming };
        match control.incoming.recv().await {
            Some(Incoming::Attached(Answer::Text(_))) => Ok(control),
            Some(Incoming::Attached(Answer::Failed(words)) | Incoming::Ended(words)) => {
                Err(complaint_error(socket, &words, DOING))
            }
            Some(Incoming::Broken(why)) => Err(io(DOING, why)),
            Some(Incoming::Reply(_)) | None => Err(io(DOING, "no answer to the attach")),
        }
    }

    /// Asks everything and waits for every answer, in order.
    ///
    /// Errors: as [`Self::converse`].
    pub(super) async fn exchange(&mut self, asks: &[Ask], doing: &'static str) -> Result<Vec<Answer>, TmuxError> {
        let mut list = List { unasked: asks.iter(), answers: Vec::with_capacity(asks.len()) };
        self.converse(&mut list, doing).await?;
        Ok(list.answers)
    }

    /// Asks what the dialogue asks, and gives it the answers in the same order, until it has no more questions.
    ///
    /// Behind the last question goes a number of our own: if its answer is not exactly that, questions and answers do
    /// not belong together (a hook of the user's that prints, a pane that imitates tmux), and none of them is used.
    /// Errors: any error ends the use of this client, and no answer may be used.
    pub(super) async fn converse(&mut self, dialogue: &mut dyn Dialogue, doing: &'static str) -> Result<(), TmuxError> {
        if !matches!(self.incoming.try_recv(), Err(mpsc::error::TryRecvError::Empty)) {
            return Err(io(doing, "the control client ended or sent what was not asked for"));
        }
        // What was asked and is not answered yet; a mark stands for itself, a question for `None`.
        let mut outstanding: VecDeque<Option<String>> = VecDeque::with_capacity(IN_FLIGHT + 1);
        // Nothing asked needs no mark.
        let mut is_marked = true;
        let mut text = String::new();
        loop {
            if outstanding.len() <= IN_FLIGHT / 2 {
                text.clear();
                while outstanding.len() < IN_FLIGHT {
                    let Some(ask) = dialogue.next() else { break };
                    ask.write_line(&mut text);
                    outstanding.push_back(None);
                    is_marked = false;
                }
                // The mark goes with the last questions, so that it costs no wait of its own.
                if outstanding.len() < IN_FLIGHT && !is_marked {
                    let mark = mark();
                    text.push_str(&quoted(&print(&mark)));
                    text.push('\n');
                    outstanding.push_back(Some(mark));
                    is_marked = true;
                }
                if !text.is_empty() {
                    self.stdin.write_all(text.as_bytes()).await.map_err(|why| io(doing, &why.to_string()))?;
                }
            }
            let Some(asked) = outstanding.pop_front() else { return Ok(()) };
            let answer = match self.incoming.recv().await {
                Some(Incoming::Reply(answer)) => answer,
                Some(Incoming::Broken(why)) => return Err(io(doing, why)),
                Some(Incoming::Ended(words)) => return Err(io(doing, &format!("the control client ended: {words}"))),
                Some(Incoming::Attached(_)) | None => return Err(io(doing, "the control client ended")),
            };
            match asked {
                None => dialogue.take(answer),
                Some(mark) if answer == Answer::Text(format!("{mark}\n").into_bytes()) => {}
                Some(_) => return Err(io(doing, "answers do not belong to their questions")),
            }
        }
    }
}

/// Questions of a list, and their answers.
struct List<'a> {
    unasked: std::slice::Iter<'a, Ask>,
    answers: Vec<Answer>,
}

impl Dialogue for List<'_> {
    fn next(&mut self) -> Option<Ask> {
        self.unasked.next().cloned()
    }

    fn take(&mut self, answer: Answer) {
        self.answers.push(answer);
    }
}

fn io(doing: &'static str, why: &str) -> TmuxError {
    TmuxError::Io { doing, why: why.to_owned() }
}

/// The pipe for replies: our end, and tmux's, which can't break. Where a pipe can't be opened by its number (elsewhere
/// than on Linux), tmux's end is a plain one.
fn reply_pipe() -> std::io::Result<(Receiver, Stdio)> {
    let (reader, writer) = std::io::pipe()?;
    #[cfg(target_os = "linux")]
    {
        // A smaller pipe serves too; it only makes the rare case above less rare.
        let _refused = rustix::pipe::fcntl_setpipe_size(&reader, PIPE_BYTES);
    }
    let both_ways = File::options().read(true).write(true).open(format!("/proc/self/fd/{}", writer.as_raw_fd()));
    let end = both_ways.map_or_else(|_| Stdio::from(OwnedFd::from(writer)), Stdio::from);
    Ok((Receiver::from_owned_fd(OwnedFd::from(reader))?, end))
}

/// Reads until the client ends, then waits for its process. It never ends the client.
async fn read_and_reap(
    mut child: Child,
    mut stdout: Receiver,
    sender: mpsc::UnboundedSender<Incoming>,
    events: broadcast::Sender<TmuxEvent>,
    live: Arc<AtomicUsize>,
) {
    let mut cutter = Framer::default();
    let mut frames = Vec::new();
    let mut buffer = vec![0; 16 << 10];
    let mut attached = false;
    let mut broken = false;
    while let Ok(read @ 1..) = stdout.read(&mut buffer).await {
        // After a break the stream is only drained, so that the server can finish and close it.
        if broken {
            continue;
        }
        cutter.push(buffer.get(..read).unwrap_or_default(), &mut frames);
        for frame in frames.drain(..) {
            let incoming = match frame {
                Frame::Event(event) => {
                    // Nobody need listen.
                    let _unheard = events.send(event);
                    continue;
                }
                Frame::Reply { ours: true, ok, body } => Incoming::Reply(answer(ok, body)),
                Frame::Reply { ours: false, ok, body } if !attached => {
                    attached = true;
                    Incoming::Attached(answer(ok, body))
                }
                Frame::Reply { .. } => continue,
                Frame::Broken(why) => {
                    broken = true;
                    Incoming::Broken(why)
                }
            };
            // The receiver is gone once the client is being closed.
            let _closing = sender.send(incoming);
            if broken {
                break;
            }
        }
    }
    let mut words = String::new();
    if let Some(stderr) = child.stderr.take() {
        // Without its words the end still counts.
        let _unreadable = stderr.take(1024).read_to_string(&mut words).await;
    }
    let _closing = sender.send(Incoming::Ended(words.trim().to_owned()));
    drop(sender);
    let _unheard = events.send(TmuxEvent::Exit);
    let _reaped = child.wait().await;
    live.fetch_sub(1, Ordering::Relaxed);
}

fn answer(ok: bool, body: Vec<u8>) -> Answer {
    if ok { Answer::Text(body) } else { Answer::Failed(String::from_utf8_lossy(&body).trim().to_owned()) }
}

/// The session to attach to; `None` if attaching would do harm to each.
///
/// Attaching clears and then hides the bell of the session's current window. So best is one whose current window is the
/// preferred one (the target's bell is never reported), never another that rings now; then one that somebody is
/// attached to already, which hides that bell anyway; then the oldest. Never one that would end when we leave.
pub(super) fn choose_session(rows: &[WindowRow], prefer_window: Option<&str>) -> Option<SessionId> {
    let preferred = |row: &WindowRow| {
        prefer_window.is_some_and(|wanted| row.name == wanted || WindowId::parse(wanted) == Some(row.window))
    };
    rows.iter()
        .filter(|row| row.active && !row.ends_unattached && (!row.bell || preferred(row)))
        .min_by_key(|row| (!preferred(row), !row.attached, row.session))
        .map(|row| row.session)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(session: u32, window: u32, name: &str, attached: bool) -> WindowRow {
        WindowRow {
            session: SessionId::new(session),
            window: WindowId::new(window),
            active: true,
            bell: false,
            attached,
            ends_unattached: false,
            name: name.to_owned(),
        }
    }

    #[test]
    fn it_attaches_where_the_target_is_current() {
        let rows = [row(0, 0, "w", false), row(1, 1, "w", true), row(2, 2, "orchestrator", false)];
        let choose = |prefer| choose_session(&rows, prefer).map(SessionId::number);
        assert_eq!(choose(Some("orchestrator")), Some(2));
        assert_eq!(choose(Some("@0")), Some(0));
        assert_eq!(choose(None), Some(1), "one that is attached already");
        assert_eq!(choose(Some("gone")), Some(1));
    }

    #[test]
    fn it_never_attaches_to_a_session_that_would_end_when_it_leaves() {
        let mut rows = vec![row(0, 0, "orchestrator", true), row(1, 1, "w", false)];
        rows[0].ends_unattached = true;
        assert_eq!(choose_session(&rows, Some("orchestrator")), Some(SessionId::new(1)));
        rows.pop();
        assert_eq!(choose_session(&rows, None), None);
    }

    #[test]
    fn it_never_takes_away_a_bell_that_may_be_reported() {
        let mut rows = vec![row(0, 0, "w", true), row(1, 1, "orchestrator", false)];
        rows[0].bell = true;
        rows[1].bell = true;
        assert_eq!(choose_session(&rows, Some("orchestrator")), Some(SessionId::new(1)));
        assert_eq!(choose_session(&rows, None), None);
    }

    #[test]
    fn a_window_in_the_background_is_no_reason() {
        let mut rows = vec![row(0, 0, "orchestrator", false), row(1, 1, "w", true)];
        rows[0].active = false;
        assert_eq!(choose_session(&rows, Some("orchestrator")), Some(SessionId::new(1)));
    }
}
