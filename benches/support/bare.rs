//! The least that asks a tmux server anything without starting a process: the baseline of a sweep.
//!
//! It sends all its questions at once, reads until the last answer has come, and looks at nothing in between: no bound
//! on what is in flight, no deadline, no check that answers belong to their questions.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Stdio};

use super::server::Server;

/// An attached control client; closed with the value.
#[derive(Debug)]
pub struct Bare {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Bare {
    /// Attaches to the server.
    pub fn attach(server: &Server) -> Self {
        let mut command = server.program();
        command.args(["-C", "attach", "-E", "-f", "no-output,ignore-size", "-t", "nexus"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("tmux is installed");
        let output = BufReader::with_capacity(64 << 10, child.stdout.take().unwrap());
        let mut bare = Self { child, output };
        // The attach is answered first.
        bare.read_answers(1);
        bare
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks everything and reads every answer; how many bytes came.
    pub fn ask(&mut self, lines: &[String]) -> usize {
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        self.read_answers(lines.len())
    }

    fn read_answers(&mut self, count: usize) -> usize {
        let (mut line, mut ended, mut bytes) = (Vec::new(), 0, 0);
        while ended < count {
            line.clear();
            let read = self.output.read_until(b'\n', &mut line).unwrap();
            assert!(read > 0, "the control client ended");
            assert!(!line.starts_with(b"%error "), "tmux refused a question");
            bytes += read;
            ended += usize::from(line.starts_with(b"%end "));
        }
        bytes
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}
