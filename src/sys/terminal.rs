//! The terminal that a program runs in: raw mode, size, bytes in and out, and pipes that are read like one.
//!
//! Raw mode is undone when [`Terminal`] is dropped, also while a panic unwinds. Reading happens on threads of its own,
//! which sleep until there is something to read.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::termios::{self, OptionalActions, Termios};

/// The terminal on standard input and output.
#[derive(Debug)]
pub struct Terminal {
    saved: Termios,
    leave: Vec<u8>,
}

impl Terminal {
    /// Takes the terminal over: raw if asked for, then writes `enter`; `leave` is written when it is given back.
    ///
    /// Errors: standard input or output is not a terminal.
    pub fn open(raw: bool, enter: &[u8], leave: &[u8]) -> io::Result<Self> {
        let saved = termios::tcgetattr(io::stdin())?;
        termios::tcgetattr(io::stdout())?;
        if raw {
            let mut mode = saved.clone();
            mode.make_raw();
            termios::tcsetattr(io::stdin(), OptionalActions::Now, &mode)?;
        }
        let mut terminal = Self { saved, leave: leave.to_owned() };
        terminal.write(enter)?;
        Ok(terminal)
    }

    /// Writes bytes to it.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let leave = std::mem::take(&mut self.leave);
        let _gone = self.write(&leave);
        let _gone = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.saved);
    }
}

/// Columns and rows of the terminal; 80×24 if it does not say.
pub fn size() -> (u16, u16) {
    match termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => (80, 24),
    }
}

/// Hands every read of standard input to `sink`, and an empty one at its end, until `sink` returns false.
pub fn read_input(mut sink: impl FnMut(Vec<u8>) -> bool + Send + 'static) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 16 << 10];
        loop {
            match io::stdin().lock().read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(count) if count > 0 => {
                    if !sink(buffer[..count].to_vec()) {
                        return;
                    }
                }
                Ok(_) | Err(_) => {
                    sink(Vec::new());
                    return;
                }
            }
        }
    });
}

/// Makes a named pipe unless there is one. Returns whether it was made.
///
/// Errors: something else is there.
pub fn make_pipe(path: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_fifo() => Ok(false),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there but is no pipe; name another path")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::from_raw_mode(0o600))?;
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

/// Hands every line of a named pipe to `sink` until it returns false.
pub fn read_lines(path: &Path, mut sink: impl FnMut(String) -> bool + Send + 'static) -> io::Result<()> {
    // Opened for writing too, so that the end of one writer is not the end of the pipe.
    let pipe: File = OpenOptions::new().read(true).write(true).open(path)?;
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            let Ok(line) = line else { return };
            if !sink(line) {
                return;
            }
        }
    });
    Ok(())
}
