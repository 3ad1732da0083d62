//! What is known of a saved screen beyond doubt (what was done to the pane, not what was seen), and how a verdict
//! measures up to it.
//!
//! Owns the one table from labels to verdicts: tests, `docs/accuracy.md` and recorded sessions are judged by it.

use std::fmt;

use serde::Deserialize;

use super::classify::ScreenFacts;
use super::verdict::{Auth, InputRow, Mode, Overlay, PaneVerdict, State};

/// What was done to the pane when the screen was saved; the form is in `docs/adding-an-agent.md`.
#[derive(Clone, Debug, Deserialize)]
pub struct Label {
    /// Name of the agent's profile.
    pub agent: String,
    /// The agent's version.
    pub version: Option<String>,
    /// One of the words of the form: `idle`, `blocked-permission`, ...
    pub state: String,
    /// `empty`, `suggestion`, `typed` or `none`.
    pub input_row: String,
    /// Whether a turn ran at that moment, whatever the screen shows.
    pub turn_running: bool,
    /// What covered the box, or `none`.
    #[serde(default)]
    pub overlay: String,
    /// What tmux said of the pane.
    pub tmux: TmuxLabel,
}

/// What tmux said of the pane, as it prints it.
#[derive(Clone, Debug, Deserialize)]
pub struct TmuxLabel {
    /// The title.
    #[serde(rename = "pane_title")]
    pub title: String,
    /// `1` if the cursor was shown.
    #[serde(rename = "cursor_flag")]
    pub cursor: Option<String>,
    /// `1` if the command had ended.
    #[serde(rename = "pane_dead")]
    pub dead: String,
    /// `1` if a tmux mode covered the pane.
    #[serde(rename = "pane_in_mode")]
    pub in_mode: String,
}

/// How a verdict measures up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// All that the label wants.
    Right,
    /// `unknown` or `empty` where the label wants more: no action follows from it.
    Unknown,
    /// Anything else, but nothing that could do harm.
    Wrong,
    /// Acting on it could do harm.
    Unsafe,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Right => "right",
            Self::Unknown => "unknown",
            Self::Wrong => "wrong",
            Self::Unsafe => "unsafe",
        })
    }
}

impl Label {
    /// What a live look would have beside the text.
    pub fn facts(&self) -> ScreenFacts {
        ScreenFacts {
            dead: Some(self.tmux.dead == "1"),
            in_mode: Some(self.tmux.in_mode == "1"),
            title: Some(self.tmux.title.clone()),
            cursor_shown: self.tmux.cursor.as_ref().map(|flag| flag == "1"),
            version: None,
        }
    }

    /// How the verdict measures up, the worst word that applies.
    pub fn grade(&self, verdict: &PaneVerdict) -> Grade {
        if self.forbids(verdict) {
            Grade::Unsafe
        } else if self.compare(verdict).is_empty() {
            Grade::Right
        } else if matches!(verdict.state, State::Unknown | State::Empty) {
            Grade::Unknown
        } else {
            Grade::Wrong
        }
    }

    /// The one table: which verdicts a label accepts, and which fields it wants. Returns what is missing.
    pub fn compare(&self, verdict: &PaneVerdict) -> Vec<String> {
        let row = self.input_row != "none";
        let retrying = self.turn_running && matches!(self.state.as_str(), "api-error" | "over-limit" | "auth-required");
        let mut wrong = Vec::new();
        let mut want = |ok: bool, what: &str| {
            if !ok {
                wrong.push(what.to_owned());
            }
        };
        let state = verdict.state;
        let free = matches!(state, State::Idle | State::AutosuggestOnly);
        match self.state.as_str() {
            _ if retrying => {
                want(state == State::Busy, "state busy");
                want(verdict.retrying.is_some(), "retrying=");
            }
            "idle" => want(state == State::Idle, "state idle"),
            "idle-with-suggestion" => {
                want(state == State::AutosuggestOnly, "state autosuggest-only");
                want(verdict.input == Some(InputRow::Ghost), "input=ghost");
            }
            "draft" => {
                want(state == State::UserTyping, "state user-typing");
                want(verdict.input == Some(InputRow::Typed), "input=typed");
            }
            "busy" if self.input_row == "typed" => {
                want(matches!(state, State::Busy | State::UserTyping), "state busy or user-typing");
                want(verdict.input == Some(InputRow::Typed), "input=typed");
            }
            "busy" => want(state == State::Busy, "state busy"),
            "queued" => {
                want(state == State::Busy, "state busy");
                want(verdict.queued, "queued=1");
            }
            "working-background" => want(state == State::WorkingBackground, "state working-background"),
            "blocked-permission" => want(blocked(verdict, &[Overlay::Permission]), "blocked overlay=permission"),
            "blocked-question" => want(blocked(verdict, &[Overlay::AskUq]), "blocked overlay=askuq"),
            "blocked-plan" => want(blocked(verdict, &[Overlay::Plan]), "blocked overlay=plan"),
            "blocked-trust" => want(
                blocked(verdict, &[Overlay::WorkspaceTrust, Overlay::BypassPermissions]),
                "blocked overlay=workspace-trust or bypass-permissions",
            ),
            "blocked-menu" | "onboarding" => {
                want(blocked(verdict, &[Overlay::Menu, Overlay::Dialog]), "blocked overlay=menu or dialog");
            }
            "over-limit" if row => {
                want(state == State::OverLimit, "state over-limit");
                want(verdict.reset_at.is_some() && verdict.limit.is_some(), "reset_at= and limit=");
            }
            "over-limit" => {
                want(matches!(state, State::OverLimit | State::Blocked), "state over-limit or blocked");
                want(verdict.overlay == Some(Overlay::RateLimit), "overlay=rate-limit");
            }
            "auth-required" if row => {
                want(free, "state idle or autosuggest-only");
                want(verdict.auth.is_some(), "auth=");
            }
            "auth-required" => {
                want(state == State::Blocked, "state blocked");
                want(verdict.auth == Some(Auth::Login), "auth=login");
            }
            "api-error" => {
                want(free, "state idle or autosuggest-only");
                want(verdict.notice.is_some(), "notice=");
            }
            "shell" => {
                want(matches!(state, State::Absent | State::Unknown), "state absent or unknown");
                want(verdict.agent.is_none(), "no agent");
            }
            "dead" => {
                want(state == State::Absent, "state absent");
                want(verdict.evidence.first().is_some_and(|e| e.rule == "pane_dead"), "evidence=pane_dead");
            }
            "unknown" => want(matches!(state, State::Unknown | State::Empty | State::Blocked), "state unknown"),
            "copy-mode" => {
                let lies_under = match state {
                    State::Busy => self.turn_running,
                    State::AutosuggestOnly => !self.turn_running && self.input_row == "suggestion",
                    _ => !self.turn_running && state == State::Idle,
                };
                want(lies_under, "what lies under copy mode");
                want(verdict.mode == Some(Mode::Copy), "mode=copy");
            }
            other => want(false, &format!("a mapping for the label {other:?}")),
        }
        wrong
    }

    /// Whether acting on the verdict could do harm, whatever else it says.
    pub fn forbids(&self, verdict: &PaneVerdict) -> bool {
        let running = self.turn_running;
        let may_paste = match self.state.as_str() {
            "idle" | "idle-with-suggestion" => true,
            "api-error" | "auth-required" => self.input_row != "none" && !running,
            // What lies under copy mode; the mode itself forbids the paste.
            "copy-mode" => !running && verdict.mode == Some(Mode::Copy),
            _ => false,
        };
        let may_retire = matches!(self.state.as_str(), "dead" | "shell");
        let dialog = self.state.starts_with("blocked-")
            || matches!(self.state.as_str(), "onboarding")
            || (matches!(self.state.as_str(), "over-limit" | "auth-required") && self.input_row == "none")
            || (self.state == "unknown" && self.overlay == "transcript");
        match verdict.state {
            State::Idle | State::AutosuggestOnly => !may_paste,
            State::Absent => !may_retire,
            State::Blocked => !dialog,
            State::Busy => dialog,
            _ => false,
        }
    }
}

/// Whether it is blocked by one of these.
fn blocked(verdict: &PaneVerdict, overlays: &[Overlay]) -> bool {
    verdict.state == State::Blocked && verdict.overlay.is_some_and(|overlay| overlays.contains(&overlay))
}

#[cfg(test)]
mod tests {
    use super::super::verdict::{Evidence, Witness};
    use super::*;

    fn label(state: &str, input_row: &str, turn_running: bool) -> Label {
        let tmux = TmuxLabel { title: String::new(), cursor: None, dead: "0".into(), in_mode: "0".into() };
        let (state, input_row) = (state.to_owned(), input_row.to_owned());
        Label { agent: "a".into(), version: None, state, input_row, turn_running, overlay: String::new(), tmux }
    }

    #[test]
    fn an_answer_that_could_do_harm_is_never_only_wrong() {
        for (state, row, running, verdict, grade) in [
            ("idle", "empty", false, State::Idle, Grade::Right),
            ("idle", "empty", false, State::Unknown, Grade::Unknown),
            ("idle", "empty", false, State::Busy, Grade::Wrong),
            ("idle", "empty", false, State::Blocked, Grade::Unsafe),
            ("busy", "empty", true, State::Idle, Grade::Unsafe),
            ("busy", "empty", true, State::Absent, Grade::Unsafe),
            ("draft", "typed", false, State::AutosuggestOnly, Grade::Unsafe),
            ("blocked-plan", "none", true, State::Busy, Grade::Unsafe),
            ("blocked-plan", "none", true, State::Unknown, Grade::Unknown),
            ("api-error", "empty", false, State::Idle, Grade::Wrong),
            ("a-word-of-nobody", "none", false, State::Unknown, Grade::Unknown),
        ] {
            let verdict = PaneVerdict::of(verdict, Evidence::new(Witness::Screen, "x"));
            assert_eq!(label(state, row, running).grade(&verdict), grade, "{state} {:?}", verdict.state);
        }
    }
}
