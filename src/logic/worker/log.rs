//! What the action log says of each window: the newest spawn, retain, follow-up and matching wrap-up.

use std::collections::HashMap;

use crate::logic::ids::WindowName;
use crate::logic::snapshot::ActionEvent;
use crate::logic::time::Timestamp;

/// An event with its place in the log; the log's order is trusted more than its times.
#[derive(Clone, Copy, Debug)]
struct Placed<'a> {
    /// Place, counted from the oldest.
    place: usize,
    /// The event.
    event: &'a ActionEvent,
}

/// The newest events of one window.
#[derive(Clone, Copy, Debug, Default)]
struct WindowEvents<'a> {
    /// `spawn`.
    spawn: Option<Placed<'a>>,
    /// `window-retain`.
    retain: Option<Placed<'a>>,
    /// `paste-followup`.
    followup: Option<Placed<'a>>,
    /// `wrap-up` that names the window.
    wrap_up: Option<Placed<'a>>,
}

/// The action log, sorted by window.
#[derive(Clone, Debug, Default)]
pub struct LogIndex<'a> {
    /// By the `window` field.
    windows: HashMap<&'a str, WindowEvents<'a>>,
    /// Wrap-ups of the old form without a window, oldest first.
    nameless: Vec<Placed<'a>>,
}

/// A wrap-up that belongs to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrapUp<'a> {
    /// Base name of the report that it cites; empty if it cites none.
    pub report: &'a str,
}

/// Drops events that a [`LogIndex`] never looks at: other kinds, and those of a window that a later one of its kind
/// supersedes. What is left keeps its order, and later events can be added to it.
pub fn drop_unused(events: &mut Vec<ActionEvent>) {
    let mut seen: std::collections::HashSet<(String, String)> = std::collections::HashSet::new();
    let mut is_used = |event: &ActionEvent| {
        let window = event.extra.get("window").map_or("", String::as_str);
        match event.event.as_str() {
            "wrap-up" if window.is_empty() => true,
            "spawn" | "window-retain" | "paste-followup" | "wrap-up" => {
                !window.is_empty() && seen.insert((event.event.clone(), window.to_owned()))
            }
            _ => false,
        }
    };
    let mut kept: Vec<bool> = events.iter().rev().map(&mut is_used).collect();
    events.retain(|_| kept.pop().unwrap_or(true));
}

impl<'a> LogIndex<'a> {
    /// Sorts the events, given oldest first.
    pub fn new(events: &'a [ActionEvent]) -> Self {
        let mut index = Self::default();
        for (place, event) in events.iter().enumerate() {
            let placed = Some(Placed { place, event });
            let window = event.extra.get("window").map(String::as_str).filter(|name| !name.is_empty());
            let Some(window) = window else {
                if event.event == "wrap-up" {
                    index.nameless.push(Placed { place, event });
                }
                continue;
            };
            let slot = match event.event.as_str() {
                "spawn" => |of: &mut WindowEvents<'a>, placed| of.spawn = placed,
                "window-retain" => |of: &mut WindowEvents<'a>, placed| of.retain = placed,
                "paste-followup" => |of: &mut WindowEvents<'a>, placed| of.followup = placed,
                "wrap-up" => |of: &mut WindowEvents<'a>, placed| of.wrap_up = placed,
                _ => continue,
            };
            slot(index.windows.entry(window).or_default(), placed);
        }
        index
    }

    /// When the window was last spawned.
    pub fn spawned_at(&self, window: &WindowName) -> Option<Timestamp> {
        Timestamp::parse_iso(&self.of(window).spawn?.event.ts)
    }

    /// When the window was last retained, and why.
    pub fn retained(&self, window: &WindowName) -> Option<(Timestamp, &'a str)> {
        let event = self.of(window).retain?.event;
        Some((Timestamp::parse_iso(&event.ts)?, event.extra.get("reason").map_or("", String::as_str)))
    }

    /// The newest wrap-up of the window's present task.
    ///
    /// Shape: an event with a `window` must name this window; one without is matched by its report's base name. A
    ///        wrap-up from before the newest spawn, or before a later follow-up, is of an earlier task.
    pub fn wrap_up(&self, window: &WindowName) -> Option<WrapUp<'a>> {
        let of = self.of(window);
        let named = of.wrap_up;
        let guessed = self.nameless.iter().rev().find(|entry| names_window(report_name(entry.event), window.as_str()));
        let newest = [named, guessed.copied()].into_iter().flatten().max_by_key(|entry| entry.place)?;
        let superseded = [of.spawn, of.followup].into_iter().flatten().any(|later| later.place > newest.place);
        (!superseded).then(|| WrapUp { report: report_name(newest.event) })
    }

    /// The window's events.
    fn of(&self, window: &WindowName) -> WindowEvents<'a> {
        self.windows.get(window.as_str()).copied().unwrap_or_default()
    }
}

/// Base name of the report that an event cites.
fn report_name(event: &ActionEvent) -> &str {
    let path = event.extra.get("report").map_or("", String::as_str);
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a report of this name is likely about the window: `<window>_…`, `…_<window>…` or `…-<window>…`, where a
/// longer word that merely starts with the window's name does not count (`w3` is not in `…-w30.md`).
fn names_window(report: &str, window: &str) -> bool {
    if window.is_empty() {
        return false;
    }
    report.match_indices(window).any(|(at, _)| {
        let (before, after) =
            (report.get(..at).unwrap_or(""), report.get(at.saturating_add(window.len())..).unwrap_or(""));
        let starts = before.is_empty() || before.ends_with(['_', '-']);
        let ends =
            if before.is_empty() { after.starts_with('_') } else { !after.starts_with(|c: char| c.is_alphanumeric()) };
        starts && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(ts: &str, event: &str, fields: &[(&str, &str)]) -> ActionEvent {
        let extra = fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ActionEvent { ts: ts.into(), event: event.into(), extra, ..ActionEvent::default() }
    }

    fn wrap_up(events: &[ActionEvent], window: &str) -> Option<String> {
        LogIndex::new(events).wrap_up(&WindowName(window.into())).map(|found| found.report.to_owned())
    }

    #[test]
    fn dropping_what_is_unused_keeps_the_latest_of_each_kind_and_window() {
        let named = |kind: &str, window: &str, report: &str| event("", kind, &[("window", window), ("report", report)]);
        let mut events = vec![
            named("wrap-up", "w3", "old.md"),
            named("spawn", "w3", ""),
            event("", "wrap-up", &[("report", "nameless.md")]),
            named("note", "w3", ""),
            event("", "spawn", &[]),
            named("wrap-up", "w4", "other.md"),
            named("spawn", "w3", "again"),
            named("wrap-up", "w3", "new.md"),
        ];
        let wanted: Vec<ActionEvent> = [2, 5, 6, 7].iter().map(|&nth: &usize| events[nth].clone()).collect();
        drop_unused(&mut events);
        assert_eq!(events, wanted);
        drop_unused(&mut events);
        assert_eq!(events, wanted);
    }

    #[test]
    fn a_window_field_decides_and_never_falls_back() {
        let events = [event("", "wrap-up", &[("window", "w4"), ("report", "reports/w3_x.md")])];
        assert_eq!(wrap_up(&events, "w4").as_deref(), Some("w3_x.md"));
        assert_eq!(wrap_up(&events, "w3"), None);
    }

    #[test]
    fn without_a_window_field_the_base_name_is_matched() {
        for (report, window, matches) in [
            ("bench-c_2026-05-11_120000_fix.md", "bench-c", true),
            ("web_2026-05-11_120000_fix-bench-c.md", "bench-c", true),
            ("web_2026-05-11_120000_bench-c-again.md", "bench-c", true),
            ("web_2026-05-11_120000_w3.md", "w3", true),
            ("web_2026-05-11_120000_w30.md", "w3", false),
            ("web_2026-05-11_120000_fix.md", "bench-c", false),
            ("w3x_2026-05-11_120000_fix.md", "w3", false),
            ("web.md", "", false),
        ] {
            let events = [event("", "wrap-up", &[("report", report)])];
            assert_eq!(wrap_up(&events, window).is_some(), matches, "{report} {window}");
        }
    }

    #[test]
    fn the_newest_match_wins() {
        let events = [
            event("", "wrap-up", &[("window", "w3"), ("report", "a.md")]),
            event("", "wrap-up", &[("report", "w3_b.md")]),
            event("", "wrap-up", &[("window", "w3"), ("report", "c.md")]),
        ];
        assert_eq!(wrap_up(&events[..2], "w3").as_deref(), Some("w3_b.md"));
        assert_eq!(wrap_up(&events, "w3").as_deref(), Some("c.md"));
    }

    #[test]
    fn a_spawn_or_a_follow_up_starts_a_task_of_its_own() {
        for later in ["spawn", "paste-followup"] {
            let events =
                [event("", "wrap-up", &[("window", "w3"), ("report", "a.md")]), event("", later, &[("window", "w3")])];
            assert_eq!(wrap_up(&events, "w3"), None, "{later}");
            assert_eq!(wrap_up(&events[..1], "w3").as_deref(), Some("a.md"));
        }
    }

    #[test]
    fn times_are_read_where_ages_are_needed() {
        let events = [
            event("2026-05-11T13:00:00-07:00", "spawn", &[("window", "w3")]),
            event("2026-05-11T13:10:00-07:00", "window-retain", &[("window", "w3"), ("reason", "keep")]),
            event("yesterday", "spawn", &[("window", "w4")]),
        ];
        let index = LogIndex::new(&events);
        let w3 = WindowName("w3".into());
        assert_eq!(index.spawned_at(&w3), Timestamp::parse_iso("2026-05-11T20:00:00Z"));
        assert_eq!(index.retained(&w3).map(|(_, why)| why), Some("keep"));
        assert_eq!(index.spawned_at(&WindowName("w4".into())), None);
    }
}
