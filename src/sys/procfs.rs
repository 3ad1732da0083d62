//! Processes, from `/proc`: one pass over all of them, then the trees below panes.
//!
//! Says what runs, not what it is: profiles decide which program is an agent. A process can end between two reads;
//! what could not be read is `None`, never a guess. A view in which we can't see ourselves is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};
use rustix::time::ClockId;

pub use crate::logic::pane::process::Process;
use crate::logic::pane::process::is_live_state;
use crate::logic::time::Timestamp;

/// Deepest level below a pane's process that is followed: deeper than any stack of wrappers.
const MAX_DEPTH: usize = 64;
/// Most processes above one that are followed.
const MAX_ABOVE: usize = 32;
/// Most bytes of a command line that are read.
const MAX_ARGV_BYTES: u64 = 64 << 10;
/// Room for a `stat` line: about fifty numbers of at most twenty digits, and a name.
const STAT_BYTES: usize = 2048;

/// Who a process is, across the reuse of pids and across restarts of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// Its id.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The boot it runs in; `None` if that can't be read.
    pub boot_id: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProcError {
    /// `/proc` can't be read.
    #[error("reading {path}: {source}")]
    Unreadable {
        /// What was read.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// We are not in the list, so it is of another pid namespace or hides processes.
    #[error("{0} does not list this process itself; it belongs to another pid namespace or hides processes")]
    Blind(PathBuf),
    /// No process has that id.
    #[error("there is no process {0}")]
    NoSuchProcess(u32),
}

/// What one `stat` line says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stat {
    /// Parent.
    ppid: u32,
    /// Short name.
    comm: String,
    /// State letter.
    state: char,
    /// The process that leads its session.
    session: u32,
    /// Whether its process group is the one in the foreground of its terminal.
    in_front: Option<bool>,
    /// Start time.
    start_ticks: u64,
    /// User and system time.
    cpu_ticks: u64,
}

/// Every process at one moment.
#[derive(Clone, Debug)]
pub struct ProcessTable {
    /// Where `/proc` is.
    root: PathBuf,
    /// Time since boot when it was read, time asleep included, as start times count it.
    read_at_uptime: Duration,
    /// When the machine started, by its clock of now.
    booted_at: Duration,
    /// By id.
    stats: BTreeMap<u32, Stat>,
    /// Ids of the children, by parent.
    children: BTreeMap<u32, Vec<u32>>,
    /// Ids of the members of sessions, by the process that leads it.
    sessions: BTreeMap<u32, Vec<u32>>,
}

impl ProcessTable {
    /// Reads the machine's processes: one small file each.
    pub fn read() -> Result<Self, ProcError> {
        Self::read_at(Path::new("/proc"), std::process::id())
    }

    /// Reads a `/proc` in which process `own` must be listed.
    fn read_at(root: &Path, own: u32) -> Result<Self, ProcError> {
        let unreadable = |source| ProcError::Unreadable { path: root.to_owned(), source };
        let read_at_uptime = clock(ClockId::Boottime);
        let booted_at = booted_at();
        let (stats, children, sessions) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut table = Self { root: root.to_owned(), read_at_uptime, booted_at, stats, children, sessions };
        for entry in fs::read_dir(root).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            // A process that ended since the listing is not there any more, which is the truth.
            let Some(stat) = read_stat(root, pid) else { continue };
            table.children.entry(stat.ppid).or_default().push(pid);
            table.sessions.entry(stat.session).or_default().push(pid);
            table.stats.insert(pid, stat);
        }
        if !table.stats.contains_key(&own) {
            return Err(ProcError::Blind(root.to_owned()));
        }
        Ok(table)
    }

    /// The process and everything below it, parents before children, at most 64 levels deep. What belongs to its
    /// session but lost its parent comes last: it may well draw on the terminal.
    ///
    /// Program file, command line and what changes are read now, for these processes only; one that has ended since, or
    /// whose id has another owner, has no file and no line, and is not alive.
    ///
    /// Errors: `NoSuchProcess` if neither it nor anything of its session is there.
    pub fn below(&self, pid: u32) -> Result<Vec<Process>, ProcError> {
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        self.walk(vec![pid], 0, &mut seen, &mut found);
        for orphan in self.sessions.get(&pid).into_iter().flatten() {
            self.walk(vec![*orphan], 1, &mut seen, &mut found);
        }
        if found.is_empty() { Err(ProcError::NoSuchProcess(pid)) } else { Ok(found) }
    }

    /// Adds processes and everything below them that was not seen yet, level by level.
    fn walk(&self, from: Vec<u32>, depth: usize, seen: &mut BTreeSet<u32>, found: &mut Vec<Process>) {
        let mut level = from;
        for depth in depth..=MAX_DEPTH {
            let mut next = Vec::new();
            for pid in level {
                let Some(stat) = self.stats.get(&pid) else { continue };
                if seen.insert(pid) {
                    found.push(self.process(pid, depth, stat));
                    next.extend(self.children.get(&pid).into_iter().flatten());
                }
            }
            level = next;
        }
    }

    /// Whether it is listed, or anything of its session is.
    pub fn lists(&self, pid: u32) -> bool {
        self.stats.contains_key(&pid) || self.sessions.contains_key(&pid)
    }

    /// Whether a process is listed that started at this time of day, give or take a moment.
    pub fn has(&self, pid: u32, started_at: Timestamp) -> bool {
        const LEEWAY_S: u64 = 3;
        self.stats.get(&pid).is_some_and(|stat| {
            let started = self.booted_at.saturating_add(since_boot(stat.start_ticks)).as_secs();
            started.abs_diff(u64::try_from(started_at.secs()).unwrap_or(0)) <= LEEWAY_S
        })
    }

    /// How long a process had been running when the table was read; time asleep counts.
    pub fn age(&self, process: &Process) -> Duration {
        self.read_at_uptime.saturating_sub(since_boot(process.start_ticks))
    }

    /// Identity of a listed process.
    pub fn identity(&self, pid: u32) -> Option<ProcessIdentity> {
        let start_ticks = self.stats.get(&pid)?.start_ticks;
        Some(ProcessIdentity { pid, start_ticks, boot_id: boot_id_at(&self.root) })
    }

    /// The process with what is read on demand.
    fn process(&self, pid: u32, depth: usize, stat: &Stat) -> Process {
        let process = describe(&self.root, pid, depth, stat, self.booted_at);
        // Last, so that all that was read before is of that process.
        match read_stat(&self.root, pid).filter(|now| now.start_ticks == stat.start_ticks) {
            Some(now) => Process { state: now.state, in_front: now.in_front, cpu_ticks: now.cpu_ticks, ..process },
            None => Process { exe: None, argv: None, state: 'X', ..process },
        }
    }
}

/// A process as its files say now.
fn describe(root: &Path, pid: u32, depth: usize, stat: &Stat, booted_at: Duration) -> Process {
    let folder = root.join(pid.to_string());
    let exe = fs::read_link(folder.join("exe")).ok().map(|path| program(&path));
    let (exe, is_replaced) = exe.map_or((None, false), |(exe, is_replaced)| (Some(exe), is_replaced));
    let started_at = booted_at.saturating_add(since_boot(stat.start_ticks));
    Process {
        pid,
        ppid: stat.ppid,
        depth,
        exe,
        is_replaced,
        argv: read_argv(&folder.join("cmdline")),
        comm: stat.comm.clone(),
        state: stat.state,
        in_front: stat.in_front,
        start_ticks: stat.start_ticks,
        started_at: Timestamp::from_secs(i64::try_from(started_at.as_secs()).unwrap_or(i64::MAX)),
        cpu_ticks: stat.cpu_ticks,
    }
}

/// The time by one of the machine's clocks.
fn clock(id: ClockId) -> Duration {
    let time = rustix::time::clock_gettime(id);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
}

/// When the machine started, by its clock of now, to the tenth: a difference of two readings is never exact.
fn booted_at() -> Duration {
    let exact = clock(ClockId::Realtime).saturating_sub(clock(ClockId::Boottime)).as_millis();
    Duration::from_millis(u64::try_from(exact.saturating_add(50) / 100 * 100).unwrap_or(u64::MAX))
}

/// Ticks since boot as a time.
fn since_boot(ticks: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_millis(ticks.saturating_mul(1000) / per_second)
}

/// A process that is held by its directory in `/proc`, and the program that it ran when it was taken hold of.
///
/// The directory stays that process's own: once the process has ended, nothing can be read through it, even if another
/// process has got the id. So two small reads tell whether the same process still runs the same program.
#[derive(Debug)]
pub struct Held {
    /// Its directory.
    dir: OwnedFd,
    /// Where its link to the program file leads.
    exe: Vec<u8>,
    /// Its command line.
    argv: Vec<u8>,
    /// Whether it is in the foreground of its terminal.
    in_front: Option<bool>,
}

impl Held {
    /// Takes hold of a process of a table; `None` if it has ended, has another program now, or can't be looked into.
    pub fn take(process: &Process) -> Option<Self> {
        Self::take_at(Path::new("/proc"), process)
    }

    fn take_at(root: &Path, process: &Process) -> Option<Self> {
        let folder = root.join(process.pid.to_string());
        let dir = openat(CWD, folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let stat = parse_stat_file(open_in(&dir, "stat")?)?;
        let exe = readlinkat(&dir, "exe", Vec::new()).ok()?.into_bytes();
        let mut argv = Vec::new();
        open_in(&dir, "cmdline")?.take(MAX_ARGV_BYTES).read_to_end(&mut argv).ok()?;
        let (path, _) = program(Path::new(OsStr::from_bytes(&exe)));
        let is_same = stat.start_ticks == process.start_ticks
            && process.exe.as_ref() == Some(&path)
            && process.argv.as_ref() == Some(&words(&argv));
        is_same.then_some(Self { dir, exe, argv, in_front: process.in_front })
    }

    /// Whether the process lives, runs the same program, file and arguments, and has the terminal as before. What can't
    /// be read counts as `false`.
    pub fn runs_the_same(&self) -> bool {
        let room = Vec::with_capacity(self.exe.len() + 1);
        // A process that has ended has no program file, not even before its parent has noticed.
        let has_file = readlinkat(&self.dir, "exe", room).is_ok_and(|exe| exe.as_bytes() == self.exe);
        has_file && self.has_arguments().unwrap_or(false) && self.is_placed_as_before().unwrap_or(false)
    }

    /// Whether it still is, or is not, in the foreground.
    fn is_placed_as_before(&self) -> Option<bool> {
        Some(parse_stat_file(open_in(&self.dir, "stat")?)?.in_front == self.in_front)
    }

    /// Whether the command line is the same. A longer one shows by the byte for which there is room.
    fn has_arguments(&self) -> Option<bool> {
        let mut bytes = vec![0; self.argv.len() + 1];
        let read = open_in(&self.dir, "cmdline")?.read(&mut bytes).ok()?;
        Some(bytes.get(..read)? == self.argv)
    }
}

/// Opens a file of a process's directory.
fn open_in(dir: &OwnedFd, name: &str) -> Option<fs::File> {
    openat(dir, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok().map(fs::File::from)
}

/// The tree below one process. For several, read one [`ProcessTable`].
pub fn tree(pid: u32) -> Result<Vec<Process>, ProcError> {
    ProcessTable::read()?.below(pid)
}

/// The processes above one, its parent first, as far as they can be seen.
///
/// Shape: `depth` is how many levels above it each stands.
pub fn above(pid: u32) -> Vec<Process> {
    let root = Path::new("/proc");
    let booted_at = booted_at();
    let mut found = Vec::new();
    let mut parent = read_stat(root, pid).map(|stat| stat.ppid);
    while let Some(pid) = parent.filter(|pid| *pid != 0 && found.len() < MAX_ABOVE) {
        let Some(stat) = read_stat(root, pid) else { break };
        parent = Some(stat.ppid);
        found.push(describe(root, pid, found.len() + 1, &stat, booted_at));
    }
    found
}

/// Identity of a running process; `None` if there is none, or only a zombie.
pub fn identity(pid: u32) -> Option<ProcessIdentity> {
    let stat = read_stat(Path::new("/proc"), pid).filter(|stat| is_live_state(stat.state))?;
    Some(ProcessIdentity { pid, start_ticks: stat.start_ticks, boot_id: boot_id() })
}

/// Whether an id belongs to any process, also one that is hidden from us.
pub fn is_taken(pid: u32) -> bool {
    let id = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| rustix::process::test_kill_process(id) != Err(rustix::io::Errno::SRCH))
}

/// Whether that very process still runs; `None` if it can't be told (a boot id is missing).
pub fn is_running(known: &ProcessIdentity) -> Option<bool> {
    match identity(known.pid) {
        None => Some(false),
        Some(now) if now.start_ticks != known.start_ticks => Some(false),
        Some(now) => Some(now.boot_id? == *known.boot_id.as_ref()?),
    }
}

/// The id of this boot of the machine.
pub fn boot_id() -> Option<String> {
    boot_id_at(Path::new("/proc"))
}

/// The id of the boot that a `/proc` belongs to.
fn boot_id_at(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join("sys/kernel/random/boot_id")).ok()?;
    let id = text.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// Reads the line about one process; `None` if it has ended or the line is odd.
fn read_stat(root: &Path, pid: u32) -> Option<Stat> {
    parse_stat_file(fs::File::open(root.join(format!("{pid}/stat"))).ok()?)
}

/// Reads an opened `stat` file, in one read.
fn parse_stat_file(mut file: fs::File) -> Option<Stat> {
    let mut bytes = [0; STAT_BYTES];
    // The kernel gives the whole line at once; one that fills all the room may have been cut.
    let read = file.read(&mut bytes).ok().filter(|&read| read < STAT_BYTES)?;
    parse_stat(&String::from_utf8_lossy(bytes.get(..read)?))
}

/// Reads a `stat` line: `pid (comm) state ppid ...`.
///
/// Shape:  the name stands in parentheses and can itself hold blanks and parentheses, so the last `)` ends it.
/// Source: proc(5); fields are counted from 1 there: utime 14, stime 15, starttime 22.
fn parse_stat(line: &str) -> Option<Stat> {
    let (head, tail) = line.rsplit_once(')')?;
    let comm = head.split_once('(')?.1.to_owned();
    // The first field after the name is number 3.
    let mut fields = [""; 20];
    for (place, field) in fields.iter_mut().zip(tail.split_ascii_whitespace()) {
        *place = field;
    }
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        ppid: u32::try_from(number(4)?).ok()?,
        comm,
        state: fields.first()?.chars().next()?,
        session: u32::try_from(number(6)?).ok()?,
        // Without a terminal the eighth is -1, which is no number here.
        in_front: number(8).filter(|group| *group > 0).map(|group| number(5) == Some(group)),
        start_ticks: number(22)?,
        cpu_ticks: number(14)?.saturating_add(number(15)?),
    })
}

/// The program's path without the kernel's mark for a file that is gone: an upgrade in place leaves every running
/// agent in that state. With it, whether that mark was there.
fn program(exe: &Path) -> (String, bool) {
    let text = exe.to_string_lossy();
    match text.strip_suffix(" (deleted)") {
        Some(path) => (path.to_owned(), true),
        None => (text.into_owned(), false),
    }
}

/// Reads a command line: words that end in NUL.
fn read_argv(path: &Path) -> Option<Vec<String>> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MAX_ARGV_BYTES).read_to_end(&mut bytes).ok()?;
    Some(words(&bytes))
}

/// The words of a command line.
fn words(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    if text.is_empty() {
        return Vec::new();
    }
    text.strip_suffix('\0').unwrap_or(&text).split('\0').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A made-up `/proc` with these processes: pid, ppid, name, state letter.
    fn fake(processes: &[(u32, u32, &str, char)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (pid, ppid, comm, state) in processes {
            let folder = dir.path().join(pid.to_string());
            fs::create_dir(&folder).unwrap();
            let stat =
                format!("{pid} ({comm}) {state} {ppid} {pid} {pid} 0 -1 4194560 1 0 0 0 7 5 0 0 20 0 1 0 {pid}00 0 0");
            fs::write(folder.join("stat"), stat).unwrap();
            fs::write(folder.join("cmdline"), format!("{comm}\0--flag\0")).unwrap();
        }
        dir
    }

    #[test]
    fn what_stands_above_is_found_from_the_parent_on() {
        let above = above(std::process::id());
        assert_eq!(above[0].pid, std::os::unix::process::parent_id());
        assert_eq!(above[0].depth, 1);
        assert!(super::above(u32::MAX).is_empty());
    }

    #[test]
    fn the_tree_is_walked_from_the_pane_down() {
        let dir = fake(&[
            (1, 0, "init", 'S'),
            (10, 1, "bash", 'S'),
            (11, 10, "claude", 'R'),
            (12, 11, "sh", 'Z'),
            (20, 1, "vi", 'S'),
        ]);
        let table = ProcessTable::read_at(dir.path(), 1).unwrap();
        let found: Vec<_> = table.below(10).unwrap().iter().map(|p| (p.pid, p.depth, p.is_live())).collect();
        assert_eq!(found, [(10, 0, true), (11, 1, true), (12, 2, false)]);
        let claude = &table.below(11).unwrap()[0];
        assert_eq!((claude.start_ticks, claude.cpu_ticks, claude.comm.as_str()), (1100, 12, "claude"));
        assert_eq!(claude.argv.as_deref(), Some(&["claude".to_owned(), "--flag".to_owned()][..]));
        assert!(matches!(table.below(99), Err(ProcError::NoSuchProcess(99))));
    }

    #[test]
    fn a_pid_that_was_used_again_lends_nobody_its_program() {
        let dir = fake(&[(1, 0, "init", 'S'), (10, 1, "claude", 'S')]);
        let folder = dir.path().join("10");
        std::os::unix::fs::symlink("/usr/bin/vi", folder.join("exe")).unwrap();
        let table = ProcessTable::read_at(dir.path(), 1).unwrap();
        assert_eq!(table.below(10).unwrap()[0].exe.as_deref(), Some("/usr/bin/vi"));
        let later = fs::read_to_string(folder.join("stat")).unwrap().replace(" 1000 0 0", " 2000 0 0");
        fs::write(folder.join("stat"), later).unwrap();
        let process = &table.below(10).unwrap()[0];
        assert_eq!((process.exe.as_ref(), process.argv.as_ref(), process.comm.as_str()), (None, None, "claude"));
    }

    #[test]
    fn a_view_without_ourselves_is_no_answer() {
        let dir = fake(&[(1, 0, "init", 'S')]);
        assert!(matches!(ProcessTable::read_at(dir.path(), 4711), Err(ProcError::Blind(_))));
        assert!(matches!(ProcessTable::read_at(Path::new("/nonexistent"), 1), Err(ProcError::Unreadable { .. })));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "real programs have to be started")]
    fn a_held_process_is_told_from_what_it_or_its_id_becomes() {
        use std::io::{BufRead as _, BufReader, Write as _};
        use std::process::{Command, Stdio};
        // The same file with other arguments, as a launcher of scripts starts one after the other.
        let script = "echo 1; read go; exec sh -c 'echo 2; read end; exec cat' sh";
        let mut child =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut input = child.stdin.take().unwrap();
        let process = || tree(child.id()).unwrap().remove(0);
        assert_eq!(lines.next().unwrap().unwrap(), "1");
        let first = process();
        let held = Held::take(&first).unwrap();
        assert!(held.runs_the_same());
        input.write_all(b"\n").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "2");
        assert!(!held.runs_the_same(), "other arguments");
        assert!(Held::take(&first).is_none(), "it is not any more what the table says");
        let held = Held::take(&process()).unwrap();
        input.write_all(b"\nx\n").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "x");
        assert!(!held.runs_the_same(), "another program file");
        let last = process();
        let held = Held::take(&last).unwrap();
        assert!(held.runs_the_same());
        assert!(
            Held::take(&Process { start_ticks: last.start_ticks + 1, ..last.clone() }).is_none(),
            "another process"
        );
        drop(input);
        // It has ended once its output is closed; nobody has waited for it yet.
        assert!(lines.next().is_none());
        while tree(child.id()).unwrap()[0].is_live() {
            std::thread::yield_now();
        }
        assert!(!held.runs_the_same(), "it has ended");
        child.wait().unwrap();
        assert!(!held.runs_the_same(), "its id is free");
    }

    #[test]
    fn a_held_process_with_a_longer_or_shorter_command_line_is_another() {
        let dir = fake(&[(1, 0, "init", 'S'), (10, 1, "claude", 'S')]);
        std::os::unix::fs::symlink("/opt/claude", dir.path().join("10/exe")).unwrap();
        let process = ProcessTable::read_at(dir.path(), 1).unwrap().below(10).unwrap().remove(0);
        let held = Held::take_at(dir.path(), &process).unwrap();
        for (argv, same) in
            [("claude\0--flag\0", true), ("claude\0--flag\0x", false), ("claude\0--flag", false), ("", false)]
        {
            fs::write(dir.path().join("10/cmdline"), argv).unwrap();
            assert_eq!(held.runs_the_same(), same, "{argv:?}");
        }
    }

    #[test]
    fn a_loop_of_parents_and_a_deep_tree_end() {
        let dir = fake(&[(1, 2, "a", 'S'), (2, 1, "b", 'S')]);
        assert_eq!(ProcessTable::read_at(dir.path(), 1).unwrap().below(1).unwrap().len(), 2);
        let chain: Vec<_> = (1..=90).map(|pid| (pid, pid - 1, "x", 'S')).collect();
        assert_eq!(ProcessTable::read_at(fake(&chain).path(), 1).unwrap().below(1).unwrap().len(), MAX_DEPTH + 1);
    }

    #[test]
    fn a_name_may_hold_blanks_and_parentheses() {
        let stat = parse_stat("7 (a) b (c) S 3 1 1 0 -1 0 1 0 0 0 1 2 0 0 20 0 1 0 99 0 0").unwrap();
        assert_eq!((stat.comm.as_str(), stat.state, stat.ppid, stat.start_ticks), ("a) b (c", 'S', 3, 99));
        for odd in ["", "7", "7 (x)", "7 (x) S", "7 (x) S -1 0 0"] {
            assert_eq!(parse_stat(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn an_upgrade_in_place_does_not_hide_the_program() {
        for (link, path, replaced) in
            [("/usr/bin/claude (deleted)", "/usr/bin/claude", true), ("/bin/sh", "/bin/sh", false)]
        {
            assert_eq!(program(Path::new(link)), (path.to_owned(), replaced));
        }
    }

    #[test]
    fn we_are_who_we_are() {
        let own = identity(std::process::id()).unwrap();
        assert_eq!(is_running(&own), Some(true));
        assert_eq!(is_running(&ProcessIdentity { start_ticks: own.start_ticks + 1, ..own.clone() }), Some(false));
        assert_eq!(is_running(&ProcessIdentity { boot_id: None, ..own.clone() }), None);
        let exe = std::env::current_exe().unwrap();
        assert_eq!(tree(own.pid).unwrap()[0].exe.as_deref(), exe.to_str());
    }
}
