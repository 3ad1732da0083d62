//! What does not work as it should while the watcher goes on: one table of modes, each with what a person does about
//! it, and the ledger of those that hold now.
//!
//! The ledger turns levels into edges: a mode that begins, changes or ends is said once. What lasts is put before
//! people: after [`Mode::alert_after`], and again each time it has lasted twice as long. What is over vanishes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::time::{Now, Timestamp, age_text};

/// Path of the ledger, relative to the state directory.
pub const FILE: &str = "degraded.json";

/// A way in which the watcher works less well than it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A file with profiles of agents can't be used; those of before hold.
    AgentProfiles,
    /// The wall clock was set, or the machine slept.
    ClockStepped,
    /// The configuration could not be loaded again; the last good one holds.
    ConfigReload,
    /// A report waits: nothing of it was typed.
    DeliveryHeld,
    /// A report may have been typed, and nobody has seen it arrive; nothing else is told meanwhile.
    DeliveryOpen,
    /// Most panes turned into one class at once, and that is not believed yet.
    FleetChanged,
    /// The target's agent takes reports, but its hooks say nothing.
    HooksSilent,
    /// The log can't be written.
    LogUnwritable,
    /// The instance lock can't be opened, so another watcher may be at work: this one only looks.
    ObserveOnly,
    /// The state directory can't be written.
    StateUnwritable,
    /// The configuration was changed in a way that needs a restart.
    RestartNeeded,
    /// No live pane bears the target's name.
    TargetAbsent,
    /// tmux does not answer.
    TmuxUnreachable,
    /// A folded paste that may be ours stands in the box, and only a person can tell.
    UnprovenText,
}

/// Until when a step of the clock is shown.
const CLOCK_STEP_SHOWN: Duration = Duration::from_secs(3600);

/// From when a lasting mode is put before people, unless it has a time of its own.
const ALERT_AFTER: Duration = Duration::from_secs(900);

impl Mode {
    /// Every mode, in the order in which they are shown: the cause before what follows from it.
    pub const ALL: [Self; 14] = [
        Self::StateUnwritable,
        Self::ObserveOnly,
        Self::TmuxUnreachable,
        Self::TargetAbsent,
        Self::UnprovenText,
        Self::DeliveryOpen,
        Self::DeliveryHeld,
        Self::FleetChanged,
        Self::HooksSilent,
        Self::ConfigReload,
        Self::AgentProfiles,
        Self::RestartNeeded,
        Self::LogUnwritable,
        Self::ClockStepped,
    ];

    /// The word in files, in status lines and in `docs/operating.md`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::AgentProfiles => "agent-profiles",
            Self::ClockStepped => "clock-stepped",
            Self::ConfigReload => "config-reload",
            Self::DeliveryHeld => "delivery-held",
            Self::DeliveryOpen => "delivery-open",
            Self::FleetChanged => "fleet-changed",
            Self::HooksSilent => "hooks-silent",
            Self::LogUnwritable => "log-unwritable",
            Self::ObserveOnly => "observe-only",
            Self::RestartNeeded => "restart-needed",
            Self::StateUnwritable => "state-unwritable",
            Self::TargetAbsent => "target-absent",
            Self::TmuxUnreachable => "tmux-unreachable",
            Self::UnprovenText => "unproven-text",
        }
    }

    /// What a person does about it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::AgentProfiles => "run `ng agents check` and correct the file; until then the profiles of before hold",
            Self::ClockStepped => "check the machine's time synchronisation; the schedule has moved with the clock",
            Self::ConfigReload => "run `ng config check` and correct the file; until then the last good settings hold",
            Self::DeliveryHeld => "remove the obstacle; it is told within seconds then",
            Self::DeliveryOpen => "look into the target's pane; if the report stands in its box, send it or clear it",
            Self::FleetChanged => {
                "look into two of the panes; it is believed by itself when further sweeps agree, within a minute"
            }
            Self::HooksSilent => {
                "see hook-errors.log; start the agent anew with the settings of `ng hooks settings`, or run `ng hooks \
                 settings` again after moving the nexus"
            }
            Self::LogUnwritable => "free space in logs/, or fix its permissions; it is written again by itself",
            Self::ObserveOnly => {
                "make nexus-instance.lock a plain file that this account may write, on a file system with flock; it becomes \
                 a full watcher by itself then"
            }
            Self::RestartNeeded => "restart the watcher when it suits you, or change the key back",
            Self::StateUnwritable => "free space, or fix permissions; nothing is typed until then, and nothing is lost",
            Self::TargetAbsent => "start the orchestrator in that window, or give the right name with --target",
            Self::TmuxUnreachable => {
                "does `tmux list-sessions` answer? a watcher of another socket needs NEXUS_TMUX_SOCKET"
            }
            Self::UnprovenText => {
                "go to the pane: send the folded paste with Enter, or clear the box; nothing is told until then"
            }
        }
    }

    /// From when on it is put before people in `watcher-alerts.log`; `None` if never.
    pub const fn alert_after(self) -> Option<Duration> {
        match self {
            // Only a person can end it, and until then the watcher is dumb.
            Self::UnprovenText | Self::ObserveOnly => Some(Duration::ZERO),
            // A delivery that is refused or fails is alerted of by its counts (`logic::delivery::trouble`).
            Self::ClockStepped | Self::RestartNeeded | Self::DeliveryHeld => None,
            _ => Some(ALERT_AFTER),
        }
    }

    /// After which time it is over by itself, where nobody can say that it is.
    const fn lasts(self) -> Option<Duration> {
        match self {
            Self::ClockStepped => Some(CLOCK_STEP_SHOWN),
            _ => None,
        }
    }
}

/// A mode that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Which.
    pub mode: Mode,
    /// Since when, milliseconds since 1970; a restart of the watcher does not begin it anew.
    pub since_ms: Timestamp,
    /// The same for people, in local time.
    pub since: String,
    /// What exactly: the reason, the error.
    pub detail: String,
}

impl Fault {
    /// How long it has lasted.
    pub fn age(&self, now: Timestamp) -> Duration {
        now.since(self.since_ms)
    }

    /// One line for people, without what to do.
    pub fn line(&self, now: Timestamp) -> String {
        format!("{} since={} ({}) {}", self.mode.word(), self.since, age_text(self.age(now)), self.detail)
    }
}

/// What is written of the ledger, and read by `ng watcher-status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The watcher that wrote it.
    pub pid: u32,
    /// What holds.
    pub modes: Vec<Fault>,
}

impl Record {
    /// Reads the file; modes that a later version knows are passed over. `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        let pid = u32::try_from(value.get("pid")?.as_u64()?).ok()?;
        let modes = value.get("modes")?.as_array()?;
        let modes = modes.iter().filter_map(|mode| serde_json::from_value(mode.clone()).ok()).collect();
        Some(Self { pid, modes })
    }

    /// The file's text.
    pub fn render(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a record is plain data");
        text.push('\n');
        text
    }
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edge {
    /// It holds from now on, or for another reason than before.
    Says(Fault),
    /// It is over, after this long.
    Over {
        /// Which.
        mode: Mode,
        /// How long it lasted.
        lasted: Duration,
        /// Whether people were alerted of it.
        alerted: bool,
    },
}

/// A mode as the ledger knows it.
#[derive(Clone, Debug)]
struct Entry {
    /// What is shown.
    fault: Fault,
    /// Age from which people are alerted next.
    alert_at: Option<Duration>,
    /// Whether they have been.
    alerted: bool,
}

/// What holds now.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// By mode.
    entries: BTreeMap<Mode, Entry>,
    /// What an earlier watcher saw begin and nothing has been said of yet.
    earlier: BTreeMap<Mode, Timestamp>,
}

impl Ledger {
    /// Takes over since when things were so, as an earlier watcher recorded it.
    pub fn remember(&mut self, earlier: &Record) {
        self.earlier = earlier.modes.iter().map(|fault| (fault.mode, fault.since_ms)).collect();
    }

    /// Says that a mode holds, with what exactly, or (`None`) that it does not.
    pub fn report(&mut self, now: &Now, mode: Mode, detail: Option<&str>) -> Option<Edge> {
        let earlier = self.earlier.remove(&mode).filter(|at| *at <= now.at && mode.lasts().is_none());
        let Some(detail) = detail else {
            let entry = self.entries.remove(&mode)?;
            return Some(Edge::Over { mode, lasted: entry.fault.age(now.at), alerted: entry.alerted });
        };
        let detail: String = detail.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if let Some(entry) = self.entries.get_mut(&mode) {
            if entry.fault.detail == detail {
                return None;
            }
            entry.fault.detail = detail;
            return Some(Edge::Says(entry.fault.clone()));
        }
        let since_ms = earlier.unwrap_or(now.at);
        let fault = Fault { mode, since_ms, since: since_ms.iso(now.offset), detail };
        let age = fault.age(now.at);
        let alert_at = mode.alert_after().map(|first| if age.is_zero() { first } else { next_alert(age) });
        self.entries.insert(mode, Entry { fault: fault.clone(), alert_at, alerted: false });
        Some(Edge::Says(fault))
    }

    /// What is over by itself by now.
    pub fn expire(&mut self, now: &Now) -> Vec<Edge> {
        let over: Vec<Mode> = self
            .entries
            .values()
            .filter(|entry| entry.fault.mode.lasts().is_some_and(|lasts| entry.fault.age(now.at) >= lasts))
            .map(|entry| entry.fault.mode)
            .collect();
        over.into_iter().filter_map(|mode| self.report(now, mode, None)).collect()
    }

    /// What people are to be alerted of now; asking answers once.
    pub fn alerts(&mut self, now: Timestamp) -> Vec<Fault> {
        let mut due = Vec::new();
        for entry in self.entries.values_mut() {
            let age = entry.fault.age(now);
            if entry.alert_at.is_some_and(|at| age >= at) {
                entry.alert_at = Some(next_alert(age));
                entry.alerted = true;
                due.push(entry.fault.clone());
            }
        }
        due
    }

    /// What holds, in the order in which it is shown.
    pub fn faults(&self) -> Vec<Fault> {
        Mode::ALL.iter().filter_map(|mode| self.entries.get(mode)).map(|entry| entry.fault.clone()).collect()
    }
}

/// The age of the next reminder: 15 minutes and each doubling of it.
fn next_alert(age: Duration) -> Duration {
    let mut next = ALERT_AFTER;
    while next <= age {
        next = next.saturating_mul(2);
    }
    next
}

/// The line of `watcher-alerts.log` that puts a fault before people.
///
/// Shape: `[<iso>] WARN <surface> <key> <detail>` as in the original tools; what only a person can end is an `ALERT`.
pub fn alert_line(now: &Now, fault: &Fault) -> String {
    let what = match fault.mode.alert_after() {
        Some(Duration::ZERO) => "ALERT",
        _ => "WARN",
    };
    let Fault { mode, since, detail, .. } = fault;
    let age = age_text(fault.age(now.at));
    format!("[{}] {what} watcher {} since={since} age={age} {detail}; {}\n", now.iso(), mode.word(), mode.remedy())
}

/// The line that takes an alert back.
pub fn over_line(now: &Now, mode: Mode, lasted: Duration) -> String {
    format!("[{}] OVER watcher {} after={}\n", now.iso(), mode.word(), age_text(lasted))
}

/// The whole state in one line for people: what systemd shows of a service.
pub fn summary(target: &str, faults: &[Fault]) -> String {
    let target: String = target.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match faults {
        [] => format!("watching for {target}"),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            format!("watching for {target}; {} since {}: {}{more}", first.mode.word(), first.since, first.detail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Now {
        Now::fixed(Timestamp::from_secs(secs))
    }

    fn words(ledger: &Ledger) -> Vec<&'static str> {
        ledger.faults().iter().map(|fault| fault.mode.word()).collect()
    }

    #[test]
    fn a_mode_is_an_edge_when_it_begins_changes_and_ends() {
        let mut ledger = Ledger::default();
        let mut report = |secs, detail| ledger.report(&at(secs), Mode::DeliveryOpen, detail);
        assert_eq!(report(1, None), None);
        let Some(Edge::Says(fault)) = report(10, Some("draft")) else { panic!("it begins") };
        assert_eq!((fault.since_ms, fault.detail.as_str()), (Timestamp::from_secs(10), "draft"));
        assert_eq!(report(20, Some("draft")), None);
        let Some(Edge::Says(fault)) = report(30, Some("dialog\n\u{1b}[2J")) else { panic!("it changes") };
        assert_eq!((fault.since_ms, fault.detail.as_str()), (Timestamp::from_secs(10), "dialog  [2J"));
        let over = Edge::Over { mode: Mode::DeliveryOpen, lasted: Duration::from_secs(40), alerted: false };
        assert_eq!(report(50, None), Some(over));
        assert_eq!(report(60, None), None);
    }

    #[test]
    fn what_lasts_is_put_before_people_each_time_it_has_lasted_twice_as_long() {
        let mut ledger = Ledger::default();
        ledger.report(&at(0), Mode::DeliveryOpen, Some("draft"));
        let mut said = Vec::new();
        for secs in 0..8000 {
            said.extend(ledger.alerts(Timestamp::from_secs(secs)).iter().map(|_| secs));
        }
        assert_eq!(said, [900, 1800, 3600, 7200]);
        let Some(Edge::Over { alerted, .. }) = ledger.report(&at(8000), Mode::DeliveryOpen, None) else { panic!() };
        assert!(alerted);
    }

    #[test]
    fn what_only_a_person_can_end_is_an_alert_at_once() {
        let mut ledger = Ledger::default();
        ledger.report(&at(5), Mode::UnprovenText, Some("a fold"));
        let alerts = ledger.alerts(Timestamp::from_secs(5));
        let line = alert_line(&at(5), alerts.first().unwrap());
        assert!(line.starts_with("[1970-01-01T00:00:05+00:00] ALERT watcher unproven-text since="), "{line}");
        assert!(line.contains("a fold; go to the pane") && line.ends_with('\n'), "{line}");
        assert!(ledger.alerts(Timestamp::from_secs(6)).is_empty());
    }

    #[test]
    fn a_restart_does_not_begin_it_anew() {
        let mut first = Ledger::default();
        first.report(&at(100), Mode::DeliveryOpen, Some("draft"));
        first.report(&at(100), Mode::ClockStepped, Some("by 1h"));
        let text = Record { pid: 7, modes: first.faults() }.render();
        let record = Record::parse(&text).unwrap();
        assert_eq!((record.pid, record.modes.len()), (7, 2));
        let mut second = Ledger::default();
        second.remember(&record);
        assert!(words(&second).is_empty(), "nothing holds until this watcher has seen it");
        second.report(&at(5000), Mode::DeliveryOpen, Some("draft"));
        second.report(&at(5000), Mode::ClockStepped, Some("by 2h"));
        let since: Vec<i64> = second.faults().iter().map(|fault| fault.since_ms.secs()).collect();
        assert_eq!(since, [100, 5000]);
        assert!(second.alerts(Timestamp::from_secs(5000)).is_empty(), "people were alerted already");
        assert_eq!(second.alerts(Timestamp::from_secs(7300)).len(), 1);
        // Over, and begun again.
        second.report(&at(8000), Mode::DeliveryOpen, None);
        second.report(&at(8001), Mode::DeliveryOpen, Some("draft"));
        assert_eq!(second.faults()[0].since_ms.secs(), 8001);
    }

    #[test]
    fn a_step_of_the_clock_is_shown_for_an_hour() {
        let mut ledger = Ledger::default();
        ledger.report(&at(0), Mode::ClockStepped, Some("by 5m"));
        ledger.report(&at(0), Mode::TargetAbsent, Some("orchestrator"));
        assert!(ledger.expire(&at(3599)).is_empty());
        assert_eq!(ledger.expire(&at(3600)).len(), 1);
        assert_eq!(words(&ledger), ["target-absent"]);
    }

    #[test]
    fn rubbish_and_modes_of_a_later_version_are_passed_over() {
        for text in ["", "[]", "{}", "{\"pid\":-1,\"modes\":[]}", "{\"pid\":1,\"modes\":{}}"] {
            assert_eq!(Record::parse(text), None, "{text}");
        }
        let text = r#"{"pid":1,"new":2,"modes":[{"mode":"teleported","since_ms":1,"since":"x","detail":"y"},3,
            {"mode":"target-absent","since_ms":1,"since":"x","detail":"y","more":1}]}"#;
        let record = Record::parse(text).unwrap();
        assert_eq!(record.modes.iter().map(|fault| fault.mode).collect::<Vec<_>>(), [Mode::TargetAbsent]);
    }

    #[test]
    fn every_mode_has_its_place_and_a_remedy() {
        let mut all = Mode::ALL.to_vec();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), Mode::ALL.len());
        for mode in Mode::ALL {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.word());
            assert!(mode.remedy().len() > 20);
        }
    }

    #[test]
    fn the_summary_is_one_line_with_the_cause_first() {
        let mut ledger = Ledger::default();
        assert_eq!(summary("orch\nx", &ledger.faults()), "watching for orch x");
        ledger.report(&at(0), Mode::DeliveryOpen, Some("no-journal"));
        ledger.report(&at(0), Mode::StateUnwritable, Some("no space"));
        let line = summary("orch", &ledger.faults());
        assert_eq!(line, "watching for orch; state-unwritable since 1970-01-01T00:00:00+00:00: no space (and 1 more)");
    }
}
