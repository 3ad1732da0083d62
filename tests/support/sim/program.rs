//! What runs in a simulated pane: what it draws, and what keys and pastes do to it.

use std::time::Duration;

use nexus_watcher::sys::procfs::Process;
use nexus_watcher::sys::tmux::Key;
use unicode_width::UnicodeWidthStr as _;

use super::agent::Agent;
use super::draw::{self, Row};

/// The program of the version that [`draw`] draws.
const CLAUDE: &str = "/home/op/.local/share/claude/versions/2.1.332";

/// A program.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// Claude Code.
    Agent(Box<Agent>),
    /// `cat` on a terminal: echoes, and repeats each line that ended.
    Cat(Vec<String>),
    /// A shell that waits at its prompt; what is typed there stands on its last row.
    Shell(String),
    /// Something that shows these rows and reads nothing.
    Rows(Vec<String>),
    /// Something that keeps what it is sent, byte by byte, and shows only what it is told to.
    Receiver {
        /// Whether it asked for framed pastes.
        framed: bool,
        /// What it was sent.
        got: String,
        /// The lines that it shows.
        shown: Vec<String>,
    },
}

impl Program {
    /// An agent whose turns take this long.
    pub(crate) fn agent(turn: Duration) -> Self {
        Self::Agent(Box::new(Agent::new(turn)))
    }

    /// `cat` that has read nothing.
    pub(crate) fn cat() -> Self {
        Self::Cat(vec![String::new()])
    }

    /// A shell at its prompt.
    pub(crate) fn shell() -> Self {
        Self::Shell(String::new())
    }

    /// Its screen.
    pub(crate) fn screen(&self, now: Duration) -> Vec<Row> {
        let of = |lines: &[String]| {
            let mut rows: Vec<Row> =
                lines.iter().flat_map(|line| draw::wrap(line, draw::COLUMNS)).map(|row| draw::one(&row)).collect();
            rows.drain(..rows.len().saturating_sub(draw::ROWS));
            rows.resize(draw::ROWS, Row::new());
            rows
        };
        match self {
            Self::Agent(agent) => draw::screen(agent, now),
            Self::Cat(lines) | Self::Rows(lines) | Self::Receiver { shown: lines, .. } => of(lines),
            Self::Shell(typed) => of(&["Resume this session with: claude --resume".into(), format!("$ {typed}")]),
        }
    }

    /// The row the cursor is in.
    pub(crate) fn cursor(&self) -> (u16, u16) {
        match self {
            Self::Agent(_) => (2, 37),
            Self::Cat(lines) | Self::Rows(lines) | Self::Receiver { shown: lines, .. } => {
                let rows: Vec<String> = lines.iter().flat_map(|line| draw::wrap(line, draw::COLUMNS)).collect();
                let column = rows.last().map_or(0, |row| row.width());
                let row = rows.len().min(draw::ROWS).saturating_sub(1);
                (u16::try_from(column).unwrap_or(0), u16::try_from(row).unwrap_or(0))
            }
            Self::Shell(typed) => (u16::try_from(typed.len() + 2).unwrap_or(0), 1),
        }
    }

    /// Whether what it is sent changes its screen.
    pub(crate) fn echoes(&self) -> bool {
        !matches!(self, Self::Rows(_) | Self::Receiver { .. })
    }

    /// What it names itself.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::Agent(_) => "✳ Claude Code",
            _ => "host",
        }
    }

    /// A paste arrives; an agent draws it after `echo`.
    pub(crate) fn paste(&mut self, text: &str, is_ours: bool, now: Duration, echo: Duration) {
        match self {
            Self::Agent(agent) => agent.paste(text, is_ours, now, echo),
            Self::Cat(_) | Self::Shell(_) => text.chars().for_each(|c| self.letter(c)),
            Self::Rows(_) => {}
            Self::Receiver { framed, got, .. } => {
                // A terminal sends the line ends of a paste as carriage returns.
                let text = text.replace('\n', "\r");
                let (start, end) = if *framed { ("\x1b[200~", "\x1b[201~") } else { ("", "") };
                got.extend([start, &text, end]);
            }
        }
    }

    /// It writes a text; a line feed begins the next row.
    pub(crate) fn print(&mut self, text: &str) {
        if let Self::Cat(lines) | Self::Rows(lines) | Self::Receiver { shown: lines, .. } = self {
            for (number, line) in text.split('\n').enumerate() {
                match lines.last_mut().filter(|_| number == 0) {
                    Some(last) => last.push_str(line),
                    None => lines.push(line.to_owned()),
                }
            }
        }
    }

    /// A key arrives.
    pub(crate) fn press(&mut self, key: Key, now: Duration) {
        match (key, &mut *self) {
            (Key::Enter, Self::Agent(agent)) => agent.enter(now),
            (Key::BSpace, Self::Agent(agent)) => agent.backspace(),
            (Key::LetterI, Self::Agent(agent)) => agent.write("i", false),
            (key, Self::Receiver { got, .. }) => got.push(match key {
                Key::Enter => '\r',
                Key::Escape => '\x1b',
                Key::BSpace => '\x7f',
                Key::LetterI => 'i',
            }),
            (Key::Enter, _) => self.letter('\n'),
            (Key::LetterI, _) => self.letter('i'),
            (Key::BSpace, Self::Cat(lines)) => {
                lines.last_mut().map(String::pop);
            }
            (Key::BSpace, Self::Shell(typed)) => {
                typed.pop();
            }
            (Key::Escape | Key::BSpace, _) => {}
        }
    }

    /// A character typed at a terminal that echoes.
    fn letter(&mut self, letter: char) {
        match self {
            Self::Cat(lines) => {
                if letter == '\n' {
                    let line = lines.last().cloned().unwrap_or_default();
                    lines.extend([line, String::new()]);
                } else if let Some(last) = lines.last_mut() {
                    last.push(letter);
                }
            }
            Self::Shell(typed) if letter == '\n' => typed.clear(),
            Self::Shell(typed) => typed.push(letter),
            Self::Agent(_) | Self::Rows(_) | Self::Receiver { .. } => {}
        }
    }

    /// Its process, which is the pane's own.
    pub(crate) fn process(&self, pid: u32) -> Process {
        let (comm, exe) = match self {
            Self::Agent(_) => ("claude", CLAUDE),
            Self::Cat(_) | Self::Receiver { .. } => ("cat", "/usr/bin/cat"),
            Self::Shell(_) => ("bash", "/usr/bin/bash"),
            Self::Rows(_) => ("less", "/usr/bin/less"),
        };
        Process {
            pid,
            ppid: 1,
            depth: 0,
            exe: Some(exe.to_owned()),
            argv: Some(vec![comm.to_owned()]),
            comm: comm.to_owned(),
            state: 'S',
            start_ticks: u64::from(pid),
            ..Process::default()
        }
    }
}
