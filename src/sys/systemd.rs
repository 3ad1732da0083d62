//! Talks to the service manager that started us, if one did (`NOTIFY_SOCKET`). Owns the socket and nothing else: what is
//! said, and when, is `service::notify`'s.
//!
//! A thread of its own sends, since a manager that does not read would hold up whoever writes to it, and the loop is one
//! thread. What can't be sent in time is dropped and may be said again.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::Duration;

use sd_notify::NotifyState;

use super::env::{Env as _, ProcessEnv};

/// Messages that may wait for a slow manager.
const QUEUE: usize = 16;

/// Longest line of status, in bytes; the protocol's datagrams are small.
const MAX_STATUS: usize = 1024;

/// One word of the protocol (`sd_notify(3)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The service works; also the end of a reload.
    Ready,
    /// The configuration is being read again.
    Reloading,
    /// The service ends.
    Stopping,
    /// The service is not stuck.
    Alive,
    /// The state in one line for people.
    Status(String),
    /// The start takes longer: this much from now on.
    StartWithin(Duration),
    /// From now on the service counts as stuck after this long without [`Word::Alive`].
    StuckAfter(Duration),
}

/// The service manager.
#[derive(Debug)]
pub struct ServiceManager {
    /// To the sending thread.
    sender: SyncSender<Vec<Word>>,
    /// Hung up when the thread has sent everything.
    ended: Receiver<()>,
}

impl ServiceManager {
    /// The manager that started this process; `None` if none did, or if no thread can be started.
    pub fn find() -> Option<Self> {
        ProcessEnv.non_empty("NOTIFY_SOCKET")?;
        let (sender, messages) = sync_channel::<Vec<Word>>(QUEUE);
        let (alive, ended) = channel::<()>();
        let thread = std::thread::Builder::new().name("notify".to_owned()).spawn(move || {
            let _alive = alive;
            let mut failed = false;
            for words in messages {
                let sent = send(&words);
                if let Err(error) = &sent
                    && !failed
                {
                    tracing::warn!(%error, "the service manager can't be told how the watcher fares");
                }
                failed = sent.is_err();
            }
        });
        thread.is_ok().then_some(Self { sender, ended })
    }

    /// After how long without [`Word::Alive`] the manager ends this process; `None` if it does not watch.
    pub fn stuck_after() -> Option<Duration> {
        sd_notify::watchdog_enabled()
    }

    /// Says something. `false` if too much waits already.
    pub fn tell(&self, words: Vec<Word>) -> bool {
        self.sender.try_send(words).is_ok()
    }

    /// Waits until everything is sent, but no longer than `patience`.
    pub fn finish(self, patience: Duration) {
        drop(self.sender);
        if self.ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            tracing::debug!("the service manager did not read the last word");
        }
    }
}

/// Sends one datagram.
fn send(words: &[Word]) -> std::io::Result<()> {
    let lines: Vec<String> = words.iter().map(line).collect();
    let states: Vec<NotifyState<'_>> = lines.iter().map(|line| NotifyState::Custom(line)).collect();
    sd_notify::notify(&states)
}

/// One line of a datagram.
fn line(word: &Word) -> String {
    let micros = |time: &Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    match word {
        Word::Ready => NotifyState::Ready.to_string(),
        Word::Reloading => {
            // Managers of type notify-reload want to know when.
            let when = NotifyState::monotonic_usec_now().map(|when| format!("\n{when}")).unwrap_or_default();
            format!("{}{when}", NotifyState::Reloading)
        }
        Word::Stopping => NotifyState::Stopping.to_string(),
        Word::Alive => NotifyState::Watchdog.to_string(),
        Word::Status(text) => {
            let fits = |(at, c): &(usize, char)| at + c.len_utf8() <= MAX_STATUS;
            let text: String =
                text.char_indices().take_while(fits).map(|(_, c)| if c.is_control() { ' ' } else { c }).collect();
            NotifyState::Status(&text).to_string()
        }
        // The package has these in 32 bits, which is 71 minutes.
        Word::StartWithin(time) => format!("EXTEND_TIMEOUT_USEC={}", micros(time)),
        Word::StuckAfter(time) => format!("WATCHDOG_USEC={}", micros(time)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_protocol() {
        let check = |word: Word, expected: &str| assert_eq!(line(&word), expected);
        check(Word::Ready, "READY=1");
        check(Word::Stopping, "STOPPING=1");
        check(Word::Alive, "WATCHDOG=1");
        check(Word::StartWithin(Duration::from_secs(120)), "EXTEND_TIMEOUT_USEC=120000000");
        check(Word::StuckAfter(Duration::from_secs(345_600)), "WATCHDOG_USEC=345600000000");
        check(Word::Status("a\nREADY=1".into()), "STATUS=a READY=1");
        assert!(line(&Word::Status("é".repeat(2000))).len() <= MAX_STATUS + 7);
        assert!(line(&Word::Reloading).starts_with("RELOADING=1\nMONOTONIC_USEC="));
    }
}
