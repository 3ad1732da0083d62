//! One kept screen with what was known beside it, and the comparison of two verdicts on it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::logic::pane::{PaneVerdict, ScreenFacts, State};
use crate::logic::screen::Capture;

/// Version of the form.
const FORM: u32 = 1;

/// One kept screen.
///
/// Shape: a JSON object a line; unknown fields are passed over, so that an older reader reads a newer file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Version of the form.
    pub v: u32,
    /// When it was seen, in seconds of the epoch.
    pub at: i64,
    /// Pane id.
    pub pane: String,
    /// Name of the window.
    pub window: String,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Title of the pane.
    pub title: String,
    /// Whether the pane's command had ended.
    #[serde(default)]
    pub dead: bool,
    /// Whether a tmux mode covered the pane.
    #[serde(default)]
    pub in_mode: bool,
    /// Profile that it was judged by.
    pub agent: String,
    /// The agent's version, where known.
    #[serde(default)]
    pub agent_version: Option<String>,
    /// Our version.
    pub ng: String,
    /// Version of tmux.
    #[serde(default)]
    pub tmux: String,
    /// Whether words were masked.
    #[serde(default)]
    pub masked: bool,
    /// The screen with colours, rows joined by line ends.
    pub screen: String,
    /// The verdict on the screen alone.
    pub verdict: PaneVerdict,
    /// The verdict of all witnesses.
    #[serde(default)]
    pub fused: Option<PaneVerdict>,
}

impl Frame {
    /// The form of what this build writes.
    pub const fn form() -> u32 {
        FORM
    }

    /// Reads one line.
    ///
    /// Errors: what is wrong with it, in words.
    pub fn parse(line: &str) -> Result<Self, String> {
        let frame: Self = serde_json::from_str(line).map_err(|error| error.to_string())?;
        match frame.v {
            FORM => Ok(frame),
            other => Err(format!("its form is {other}, and this program reads {FORM}; use a newer ng")),
        }
    }

    /// The screen, to be judged again.
    pub fn capture(&self) -> Capture {
        Capture::from_bytes(self.screen.as_bytes())
    }

    /// What was known besides the text.
    pub fn facts(&self) -> ScreenFacts {
        ScreenFacts {
            dead: Some(self.dead),
            in_mode: Some(self.in_mode),
            title: Some(self.title.clone()),
            version: self.agent_version.clone(),
        }
    }
}

/// Two verdicts on one screen that are not the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// `state` or `state/overlay` of the old one.
    pub old: String,
    /// The same of the new one.
    pub new: String,
    /// Rule that decided the old one.
    pub old_rule: String,
    /// Rule that decided the new one.
    pub new_rule: String,
}

impl Difference {
    /// What two verdicts differ in that anything follows from; `None` if they agree.
    pub fn between(old: &PaneVerdict, new: &PaneVerdict) -> Option<Self> {
        let fields = |verdict: &PaneVerdict| {
            let verdict = verdict.clone();
            (
                (verdict.state, verdict.overlay, verdict.input, verdict.auth, verdict.mode),
                (verdict.queued, verdict.throttled, verdict.retrying, verdict.notice),
                (verdict.reset_at, verdict.limit, verdict.background),
            )
        };
        let rule =
            |verdict: &PaneVerdict| verdict.evidence.first().map_or_else(String::new, |first| first.rule.clone());
        (fields(old) != fields(new)).then(|| Self {
            old: word(old),
            new: word(new),
            old_rule: rule(old),
            new_rule: rule(new),
        })
    }
}

/// A verdict in a word.
fn word(verdict: &PaneVerdict) -> String {
    match verdict.overlay {
        Some(overlay) => format!("{}/{overlay}", verdict.state),
        None => verdict.state.to_string(),
    }
}

/// How many screens were taken for what, before and now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// By agent and version: how many were taken for the first state before and for the second now.
    counts: BTreeMap<(String, String), BTreeMap<(State, State), u64>>,
}

impl Table {
    /// Counts one screen.
    pub fn count(&mut self, agent: &str, version: Option<&str>, old: State, new: State) {
        let group = (agent.to_owned(), version.unwrap_or("unknown").to_owned());
        *self.counts.entry(group).or_default().entry((old, new)).or_default() += 1;
    }

    /// The table, one line a row.
    pub fn lines(&self) -> Vec<String> {
        let mut lines =
            vec!["| agent | version | before | now | screens |".to_owned(), "|---|---|---|---|--:|".to_owned()];
        for ((agent, version), counts) in &self.counts {
            for ((old, new), count) in counts {
                let mark = if old == new { "" } else { " (changed)" };
                lines.push(format!("| {agent} | {version} | {old} | {new}{mark} | {count} |"));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::pane::{Evidence, Overlay, Witness};

    fn verdict(state: State) -> PaneVerdict {
        PaneVerdict::of(state, Evidence::new(Witness::Screen, "a-rule"))
    }

    fn frame() -> Frame {
        Frame {
            v: FORM,
            at: 1,
            pane: "%1".into(),
            window: "w1".into(),
            size: (80, 24),
            title: "t".into(),
            dead: false,
            in_mode: false,
            agent: "claude".into(),
            agent_version: None,
            ng: "0".into(),
            tmux: "3.3a".into(),
            masked: false,
            screen: "a\nb\n".into(),
            verdict: verdict(State::Idle),
            fused: None,
        }
    }

    #[test]
    fn a_frame_reads_back_and_another_form_is_refused_with_what_to_do() {
        let line = serde_json::to_string(&frame()).unwrap();
        assert_eq!(Frame::parse(&line).unwrap(), frame());
        let newer = line.replacen("\"v\":1", "\"v\":9", 1);
        assert!(Frame::parse(&newer).unwrap_err().contains("use a newer ng"));
        assert!(Frame::parse(&line[..line.len() / 2]).is_err());
    }

    #[test]
    fn verdicts_differ_in_what_anything_follows_from() {
        let idle = verdict(State::Idle);
        let mut other = idle.clone();
        other.evidence.clear();
        other.content_hash = Some(3);
        assert_eq!(Difference::between(&idle, &other), None);
        let mut blocked = verdict(State::Blocked);
        blocked.overlay = Some(Overlay::Permission);
        let difference = Difference::between(&idle, &blocked).unwrap();
        assert_eq!((difference.old.as_str(), difference.new.as_str()), ("idle", "blocked/permission"));
    }
}
