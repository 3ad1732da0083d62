//! Who must end before a successor may start, and who must not be touched.
//!
//! Only watchers of *this* state directory are ended: processes that run the watcher's program and have its lock file
//! open, and what is left of the group of the recorded holder. Everything else is refused with the reason.

use std::path::Path;

use super::holder::{Assessment, Holder};
use super::verdict::{Identity, LockState};

/// What is known of a state directory and of the processes on this machine.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// The instance lock.
    pub lock: LockState,
    /// What the lock's text says of its holder; of an earlier one if the lock is free.
    pub holder: Holder,
    /// Name of this host.
    pub host: String,
    /// Boot id of this host.
    pub boot_id: String,
    /// Our pid namespace.
    pub pid_ns: String,
    /// Our process id.
    pub own_pid: u32,
    /// Our process group.
    pub own_group: Option<u32>,
    /// What the recorded process is.
    pub recorded: Identity,
    /// Live processes that run the watcher's program and have this lock's file open, or a file of that name that was
    /// removed since; and a watcher that only observes here.
    pub watchers: Vec<Watcher>,
    /// Live members of the group that the recorded process led, if that process is gone.
    pub orphans: Vec<u32>,
    /// Whether one of them runs the watcher's program or has the lock's file open. A group has one session, so one
    /// member vouches for the rest.
    pub orphans_are_ours: bool,
}

/// A live watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watcher {
    /// Its process.
    pub pid: u32,
    /// Its process group.
    pub group: u32,
}

/// What must be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A watcher, and with it its group if it leads one.
    Watcher {
        /// Its process.
        pid: u32,
        /// The group that it leads. `None` where it is a guest in somebody's group, which is left alone.
        group: Option<u32>,
    },
    /// What is left of a watcher's group.
    Orphans {
        /// The group.
        group: u32,
    },
}

/// Decides whom a successor must end, in order. Nobody is a fine answer.
///
/// Errors: somebody holds the lock who is not certainly a watcher that may be ended from here; why.
pub fn plan(scene: &Scene, lock: &Path) -> Result<Vec<Target>, String> {
    let held = scene.lock == LockState::Held;
    let holder = &scene.holder;
    if held && holder.assess(&scene.host, &scene.boot_id) == Assessment::LiveRemote {
        return Err(format!("it runs on host {}; end it there", holder.host));
    }
    let elsewhere = holder.is_in_other_namespace(&scene.pid_ns);
    if held && elsewhere {
        return Err("it runs in another sandbox (pid namespace); end it there".to_owned());
    }
    if held && holder.pid == Some(scene.own_pid) && !elsewhere {
        return Err("we hold it ourselves".to_owned());
    }
    let mut targets: Vec<Target> = scene
        .watchers
        .iter()
        .filter(|watcher| watcher.pid != scene.own_pid)
        .map(|watcher| Target::Watcher {
            pid: watcher.pid,
            group: (watcher.group == watcher.pid && scene.own_group != Some(watcher.group)).then_some(watcher.group),
        })
        .collect();
    // A record of an earlier boot or of another namespace names a number, not a process of ours.
    let is_here = !elsewhere && holder.assess(&scene.host, &scene.boot_id) == Assessment::LiveLocal;
    if let Some(group) = holder
        .pid
        .filter(|pid| is_here && scene.orphans_are_ours && !scene.orphans.is_empty() && scene.own_group != Some(*pid))
    {
        targets.push(Target::Orphans { group });
    }
    if held && targets.is_empty() {
        return Err(match (holder.pid, scene.recorded) {
            (None, _) => {
                format!("it did not write its pid into the file; find it with `fuser {}`", lock.display())
            }
            (Some(pid), Identity::NotWatcher) => {
                format!("process {pid} is recorded as its holder, but is gone or runs another program")
            }
            (Some(pid), _) => {
                format!("process {pid} is recorded as its holder, but is not seen to have it open")
            }
        });
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "/s/lock";

    fn holder() -> Holder {
        Holder {
            pid: Some(70),
            host: "here".into(),
            boot_id: "b1".into(),
            pid_ns: "pid:[1]".into(),
            ..Holder::default()
        }
    }

    /// The lock is held by watcher 70, which leads a group of its own.
    fn scene() -> Scene {
        Scene {
            lock: LockState::Held,
            holder: holder(),
            host: "here".into(),
            boot_id: "b1".into(),
            pid_ns: "pid:[1]".into(),
            own_pid: 5,
            own_group: Some(4),
            recorded: Identity::Watcher,
            watchers: vec![Watcher { pid: 70, group: 70 }],
            orphans: Vec::new(),
            orphans_are_ours: false,
        }
    }

    fn check(name: &str, scene: &Scene, expected: Result<&[Target], &str>) {
        match (plan(scene, Path::new(LOCK)), expected) {
            (Ok(targets), Ok(expected)) => assert_eq!(targets, expected, "{name}"),
            (Err(why), Err(words)) => assert!(why.contains(words), "{name}: {why}"),
            (found, expected) => panic!("{name}: {found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn who_is_ended_row_by_row() {
        let alone = |pid| Target::Watcher { pid, group: None };
        let leads = |pid| Target::Watcher { pid, group: Some(pid) };
        let s = scene();
        check("the holder, with its group", &s, Ok(&[leads(70)]));
        let guest = Scene { watchers: vec![Watcher { pid: 70, group: 60 }], ..s.clone() };
        check("a guest in somebody's group", &guest, Ok(&[alone(70)]));
        check("in our own group", &Scene { own_group: Some(70), ..s.clone() }, Ok(&[alone(70)]));
        let two = vec![Watcher { pid: 70, group: 70 }, Watcher { pid: 80, group: 80 }];
        check("a second one by its open lock", &Scene { watchers: two, ..s.clone() }, Ok(&[leads(70), leads(80)]));
        let free = Scene { lock: LockState::Free, recorded: Identity::NotWatcher, watchers: vec![], ..s.clone() };
        check("nobody", &free, Ok(&[]));
        let removed = Scene { watchers: vec![Watcher { pid: 70, group: 70 }], ..free.clone() };
        check("one whose lock file was removed", &removed, Ok(&[leads(70)]));
        let unreadable = Scene { lock: LockState::CannotTell, watchers: vec![], ..s.clone() };
        check("a lock that can't be tried", &unreadable, Ok(&[]));
        let unsigned = Scene { holder: Holder::default(), ..s.clone() };
        check("a text that says nothing", &unsigned, Ok(&[leads(70)]));
        let only_us = Scene { watchers: vec![Watcher { pid: 5, group: 4 }], ..free.clone() };
        check("nobody but ourselves", &only_us, Ok(&[]));
    }

    #[test]
    fn orphans_are_ended_only_if_they_are_certainly_ours() {
        let orphans = [Target::Orphans { group: 70 }];
        let left = Scene {
            recorded: Identity::NotWatcher,
            watchers: vec![],
            orphans: vec![71, 72],
            orphans_are_ours: true,
            ..scene()
        };
        check("they keep the lock", &left, Ok(&orphans));
        let free = Scene { lock: LockState::Free, ..left.clone() };
        check("they keep nothing", &free, Ok(&orphans));
        check("not ours", &Scene { orphans_are_ours: false, ..free.clone() }, Ok(&[]));
        check("not ours, lock held", &Scene { orphans_are_ours: false, ..left.clone() }, Err("gone or runs another"));
        check("our own group", &Scene { own_group: Some(70), ..free.clone() }, Ok(&[]));
        for (name, holder) in [
            ("an earlier boot", Holder { boot_id: "b0".into(), ..holder() }),
            ("another namespace", Holder { pid_ns: "pid:[2]".into(), ..holder() }),
            ("another host", Holder { host: "there".into(), ..holder() }),
            ("no text", Holder { pid: Some(70), ..Holder::default() }),
        ] {
            check(name, &Scene { holder, ..free.clone() }, Ok(&[]));
        }
    }

    #[test]
    fn whoever_is_not_certainly_a_watcher_of_ours_is_left_alone() {
        let unseen = Scene { watchers: vec![], ..scene() };
        let with = |change: &dyn Fn(&mut Holder)| {
            let mut scene = scene();
            change(&mut scene.holder);
            scene
        };
        check("another host", &with(&|holder| holder.host = "there".into()), Err("end it there"));
        check("another pid namespace", &with(&|holder| holder.pid_ns = "pid:[2]".into()), Err("sandbox"));
        check("ourselves", &with(&|holder| holder.pid = Some(5)), Err("ourselves"));
        check("no pid", &Scene { holder: Holder::default(), ..unseen.clone() }, Err("fuser /s/lock"));
        check("not open", &unseen, Err("not seen to have it open"));
        check("another program", &Scene { recorded: Identity::NotWatcher, ..unseen }, Err("another program"));
    }
}
