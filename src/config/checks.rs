//! Checks over several keys, each of which is fine alone.

use super::resolved::Settings;

/// What a check says: the key to blame and what is wrong with it.
pub(super) struct Objection {
    /// The key whose value is to change.
    pub(super) key: &'static str,
    /// What is wrong.
    pub(super) what: String,
}

/// One check.
type Check = fn(&Settings) -> Option<Objection>;

/// All of them.
pub(super) const CHECKS: &[Check] = &[confirm_after_settle, sockets_differ, stale_after_ticks, windows_differ];

/// A proof can only be looked for once the text had time to show.
fn confirm_after_settle(settings: &Settings) -> Option<Objection> {
    (settings.paste_confirm < settings.paste_settle).then(|| Objection {
        key: "monitor.paste_confirm_timeout_seconds",
        what: format!(
            "{} s is shorter than monitor.paste.settle_seconds, {} s",
            settings.paste_confirm.as_secs(),
            settings.paste_settle.as_secs()
        ),
    })
}

/// A server that is listed twice would have two numbers.
fn sockets_differ(settings: &Settings) -> Option<Objection> {
    let sockets = &settings.tmux_sockets;
    let is_twice = |(at, socket): (usize, &String)| sockets.iter().take(at).any(|earlier| earlier == socket);
    let twice = sockets.iter().enumerate().find(|(at, socket)| is_twice((*at, socket)));
    twice.map(|(_, socket)| Objection { key: "monitor.tmux.sockets", what: format!("{socket:?} is listed twice") })
}

/// A watcher that misses one tick must not count as down, since a second one would be started.
fn stale_after_ticks(settings: &Settings) -> Option<Objection> {
    (settings.beacon_stale < settings.heartbeat_tick * 2).then(|| Objection {
        key: "monitor.instance_heartbeat_staleness_seconds",
        what: format!(
            "{} s is less than twice monitor.watcher.heartbeat_tick_seconds, {} s, so a healthy watcher would count as down",
            settings.beacon_stale.as_secs(),
            settings.heartbeat_tick.as_secs()
        ),
    })
}

/// The services window is never typed into, the target window is.
fn windows_differ(settings: &Settings) -> Option<Objection> {
    (settings.services_window == settings.target_window).then(|| Objection {
        key: "monitor.services_window",
        what: format!("{:?} is the target window as well (monitor.target_window)", settings.services_window),
    })
}
