//! Standard input with bounds: a program that never closes its end must not hold us.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::clock::Clock;

/// What standard input held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// At most the bytes asked for.
    pub bytes: Vec<u8>,
    /// Whether there was more.
    pub is_cut: bool,
}

/// Reads until the end, at most `max_bytes` of it and for at most `patience`.
///
/// What is beyond the limit is read and dropped, so that the writer sees no broken pipe.
pub fn read_bounded(max_bytes: usize, patience: Duration) -> io::Result<Input> {
    let stdin = io::stdin();
    let until = Clock::System.now().uptime.saturating_add(patience);
    let mut input = Input { bytes: Vec::new(), is_cut: false };
    let mut chunk = vec![0_u8; 64 << 10];
    loop {
        let left = until.saturating_sub(Clock::System.now().uptime);
        if left.is_zero() {
            return Ok(input);
        }
        if !is_readable(&stdin, left)? {
            // Out of patience or interrupted: the clock tells.
            continue;
        }
        // Not through std's buffer, which `poll` does not see.
        match rustix::io::read(&stdin, &mut chunk) {
            Ok(0) => return Ok(input),
            Ok(count) => {
                let read = chunk.get(..count).unwrap_or_default();
                let room = max_bytes.saturating_sub(input.bytes.len());
                input.is_cut |= read.len() > room;
                input.bytes.extend_from_slice(read.get(..room.min(read.len())).unwrap_or_default());
            }
            // A signal, or a readiness that was none.
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads one line, and whether it is a yes. The end of input is none.
///
/// Errors: standard input can't be read.
pub fn says_yes() -> io::Result<bool> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// Waits until there is something to read, or the end of it.
fn is_readable(stdin: &io::Stdin, patience: Duration) -> io::Result<bool> {
    let timeout = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(patience.subsec_nanos()),
    };
    match poll(&mut [PollFd::new(stdin, PollFlags::IN)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
