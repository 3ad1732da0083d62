//! What a service manager hears from the watcher: the real protocol over a real socket, without systemd.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
mod fleet;

use std::cell::RefCell;
use std::os::unix::net::UnixDatagram;

use fleet::Fleet;
use rustix::process::{Pid, Signal};

/// The manager's end of the socket, and everything that it has heard.
struct Manager {
    socket: UnixDatagram,
    heard: RefCell<Vec<String>>,
}

impl Manager {
    /// A manager for the watcher of this fleet, which is to show life every `watchdog_ms`.
    fn of(fleet: &mut Fleet, watchdog_ms: u32) -> Self {
        let path = fleet.root().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        fleet.env.push(("NOTIFY_SOCKET".into(), path.display().to_string()));
        fleet.env.push(("WATCHDOG_USEC".into(), (watchdog_ms * 1000).to_string()));
        Self { socket, heard: RefCell::default() }
    }

    /// Every line heard so far.
    fn lines(&self) -> Vec<String> {
        let mut datagram = [0; 4096];
        while let Ok(length) = self.socket.recv(&mut datagram) {
            let text = String::from_utf8_lossy(&datagram[..length]).into_owned();
            self.heard.borrow_mut().extend(text.lines().map(str::to_owned));
        }
        self.heard.borrow().clone()
    }

    fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|heard| *heard == line).count()
    }

    fn has(&self, start: &str) -> bool {
        self.lines().iter().any(|line| line.starts_with(start))
    }

    fn status(&self) -> String {
        let lines = self.lines();
        let status = lines.iter().rev().find_map(|line| line.strip_prefix("STATUS="));
        status.unwrap_or_default().to_owned()
    }
}

#[test]
fn it_is_ready_when_it_watches_and_says_when_it_ends() {
    let mut fleet = Fleet::new();
    let manager = Manager::of(&mut fleet, 400);
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.watch();
    fleet.wait("the watcher to be ready", || manager.count("READY=1") == 1);
    // Whoever is told that it runs finds that it does.
    assert_eq!(fleet.ng(&["watcher-status"]).0, 0);
    // The unit of this test counts it as stuck after 0.4 s; four cycles, and 15 minutes at least, are its own measure.
    assert!(manager.has("WATCHDOG_USEC=900000000"), "{:?}", manager.lines());
    fleet.wait("signs of life", || manager.count("WATCHDOG=1") > 3);
    fleet.wait("a status", || manager.status() == "watching for orchestrator");
    fleet.signal_watcher(Signal::TERM);
    fleet.wait_ended("told to end");
    assert_eq!((manager.count("READY=1"), manager.count("STOPPING=1")), (1, 1));
    assert!(!manager.has("RELOADING=1"));
}

#[test]
fn a_reload_is_told_before_and_after_and_what_is_wrong_with_it_until_it_is_not() {
    let mut fleet = Fleet::new();
    let manager = Manager::of(&mut fleet, 400);
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.watch();
    fleet.wait("the watcher to be ready", || manager.count("READY=1") == 1);
    fleet.configure("monitor:\n  interval_seconds: soon\n");
    fleet.signal_watcher(Signal::HUP);
    fleet.wait("the reload", || manager.count("READY=1") == 2);
    let lines = manager.lines();
    let at = |line: &str| lines.iter().rposition(|heard| heard.starts_with(line)).unwrap();
    assert!(at("RELOADING=1") + 1 == at("MONOTONIC_USEC=") && at("MONOTONIC_USEC=") < at("READY=1"), "{lines:?}");
    fleet.wait("what is wrong", || manager.status().contains("; config-reload since "));
    assert!(manager.status().contains("interval_seconds"), "{}", manager.status());
    fleet.configure("monitor:\n  interval_seconds: 2\n");
    fleet.signal_watcher(Signal::HUP);
    fleet.wait("the end of it", || manager.status() == "watching for orchestrator");
}

#[test]
fn a_report_that_waits_and_a_silent_tmux_are_no_standstill() {
    let mut fleet = Fleet::new();
    let manager = Manager::of(&mut fleet, 400);
    fleet.orchestrator(&format!("{} --draft half", fleet.hooks("orchestrator")));
    fleet.decide("keeper", "0a1b2c3d4e5f");
    fleet.watch();
    fleet.wait("the draft to be told", || manager.status().contains("; delivery-held since "));
    assert!(manager.status().contains("draft: "), "{}", manager.status());
    let (_, text) = fleet.ng(&["watcher-status"]);
    assert!(text.contains("degraded: delivery-held since=") && text.contains("draft: "), "{text}");
    let before = manager.count("WATCHDOG=1");
    fleet.wait("signs of life beside a report that waits", || manager.count("WATCHDOG=1") > before + 2);

    let server: i32 = fleet.tmux(&["display-message", "-p", "#{pid}"]).parse().unwrap();
    let server = Pid::from_raw(server).unwrap();
    rustix::process::kill_process(server, Signal::STOP).unwrap();
    fleet.wait("tmux to be missed", || manager.status().contains("; tmux-unreachable since "));
    let before = manager.count("WATCHDOG=1");
    fleet.wait("signs of life beside a silent tmux", || manager.count("WATCHDOG=1") > before + 1);
    rustix::process::kill_process(server, Signal::CONT).unwrap();
    fleet.wait("tmux to be back", || !manager.status().contains("tmux-unreachable"));
    fleet.wait("the file to say so", || !fleet.ng(&["watcher-status"]).1.contains("tmux-unreachable"));
}

#[test]
fn a_manager_that_does_not_read_holds_nothing_up() {
    let mut fleet = Fleet::new();
    let manager = Manager::of(&mut fleet, 400);
    // It has stopped reading, and its queue is full.
    let other = UnixDatagram::unbound().unwrap();
    other.connect(fleet.root().join("notify")).unwrap();
    other.set_nonblocking(true).unwrap();
    while other.send(b"full").is_ok() {}
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.decide("keeper", "0a1b2c3d4e5f");
    fleet.watch();
    fleet.wait("the news", || fleet.submitted("orchestrator").iter().any(|text| text.contains("0a1b2c3d4e5f")));
    fleet.signal_watcher(Signal::TERM);
    fleet.wait_ended("told to end");
    assert_eq!(manager.count("READY=1"), 0, "nothing could be said");
}

#[test]
fn what_a_start_finds_missing_is_told_and_taken_back() {
    let mut fleet = Fleet::new();
    let manager = Manager::of(&mut fleet, 400);
    fleet.watch();
    fleet.wait("the target to be missed", || manager.status().contains("; target-absent since "));
    assert_eq!(manager.count("READY=1"), 1, "a target that is not there yet is no reason not to be ready");
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.wait("the target to be found", || manager.status() == "watching for orchestrator");
}
