//! Processor time, memory and children of processes, from `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

/// Processor time that a process has used, in nanoseconds' precision. Threads that have ended are left out.
///
/// Source: `/proc/PID/task/TID/schedstat`, first number; brought up to date whenever the thread stops running.
pub fn cpu(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap_or_else(|error| panic!("process {pid}: {error}"));
    let of_task = |task: std::io::Result<fs::DirEntry>| {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    tasks.filter_map(of_task).sum()
}

/// Processor time that this process has used, this moment included.
pub fn own_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

/// Resident memory in bytes.
pub fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_else(|error| panic!("{pid}: {error}"));
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the process has memory");
    line.trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}

/// The short name of a process.
pub fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// Processes that a process has started and not waited for yet.
pub fn children(pid: u32) -> BTreeSet<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    texts.flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// Page faults of the children that a process has waited for. No program can run without one, so each child that ends
/// makes it grow.
pub fn faults_of_children(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_else(|error| panic!("{pid}: {error}"));
    // Behind the name come fields 3 and on; field 11 counts the faults of children.
    text.rsplit(')').next().unwrap().split_whitespace().nth(11 - 3).unwrap().parse().unwrap()
}
