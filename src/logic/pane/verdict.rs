//! The verdict on one pane and the words it is printed in.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::choice::Choice;
use crate::logic::time::Timestamp;

/// Defines an enum whose values have one printed word each.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The printed word.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The value with this printed word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.word() == word)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words! {
    /// The one state of a pane. Anything added later must refuse pasting and retiring by default.
    State {
        /// Empty box, nothing in flight.
        Idle = "idle",
        /// Idle, with a dim suggestion that nobody typed.
        AutosuggestOnly = "autosuggest-only",
        /// A turn is in flight (also queued, throttled, retrying).
        Busy = "busy",
        /// Somebody's unsent text is in the box.
        UserTyping = "user-typing",
        /// A live overlay waits for an answer.
        Blocked = "blocked",
        /// A usage limit holds the agent.
        OverLimit = "over-limit",
        /// The turn ended; a background shell or monitor of the agent is alive.
        WorkingBackground = "working-background",
        /// A scheduled wake-up is pending.
        WorkingSelfPaced = "working-self-paced",
        /// A declared external wait that nothing will wake.
        IdleOrphanAsync = "idle-orphan-async",
        /// Do not know yet, but the agent's process lives.
        Empty = "empty",
        /// Nothing alive under the pane, positively proven.
        Absent = "absent",
        /// Could not look, or nothing matched.
        Unknown = "unknown",
    }
}

impl State {
    /// Whether the pane may be retired: an allow-list, default deny.
    pub const fn allows_retire(self) -> bool {
        matches!(self, Self::Idle | Self::AutosuggestOnly | Self::Absent | Self::IdleOrphanAsync)
    }
}

words! {
    /// What covers the prompt.
    Overlay {
        /// A tool asks for permission.
        Permission = "permission",
        /// The agent asks its user a question.
        AskUq = "askuq",
        /// A plan waits for approval.
        Plan = "plan",
        /// The folder is not trusted yet.
        WorkspaceTrust = "workspace-trust",
        /// The warning shown when permissions are bypassed.
        BypassPermissions = "bypass-permissions",
        /// A login form or its code step.
        Login = "login",
        /// The menu shown when a usage limit is reached.
        RateLimit = "rate-limit",
        /// A feedback survey.
        Survey = "survey",
        /// Any other menu that the agent's own commands open.
        Menu = "menu",
        /// A dialog that no rule names.
        Dialog = "dialog",
    }
}

words! {
    /// What stands in the input row.
    InputRow {
        /// Nothing.
        Blank = "blank",
        /// A dim suggestion.
        Ghost = "ghost",
        /// Unsent text.
        Typed = "typed",
        /// Not blank, and no mark tells which; treated as a draft.
        Unclear = "?",
    }
}

words! {
    /// The state of the agent's credentials, where the screen tells.
    Auth {
        /// A login form is up.
        Login = "login",
        /// Signed out, prompt row present.
        Expired = "expired",
    }
}

words! {
    /// A mode of the input row or of tmux.
    Mode {
        /// The agent's vi keys, normal mode.
        VimNormal = "vim-normal",
        /// The agent's vi keys, insert mode.
        VimInsert = "vim-insert",
        /// tmux copy mode or another tmux mode.
        Copy = "copy",
    }
}

words! {
    /// Who said it.
    Witness {
        /// A tmux flag.
        Tmux = "tmux",
        /// A rule of the agent's profile on the screen.
        Screen = "screen",
        /// The pane title.
        Title = "title",
        /// A hook's heartbeat file.
        Hook = "hook",
        /// The session transcript.
        Transcript = "transcript",
        /// The process tree.
        Process = "process",
        /// What was seen before.
        Memory = "memory",
    }
}

/// One reason for a verdict: who said it, by which rule, where, how old.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Who said it.
    pub witness: Witness,
    /// The rule's stable id (kebab-case), e.g. `claude-spinner` or `pane-dead`.
    pub rule: String,
    /// The matched line or value, shortened to what people can read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// Screen row of the match, counted from the top, from zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u16>,
    /// File that the fact came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Age of the fact when the verdict was made, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", with = "age_s", default)]
    pub age_s: Option<Duration>,
}

impl Evidence {
    /// Evidence of a rule, without a place or age.
    pub fn new(witness: Witness, rule: impl Into<String>) -> Self {
        Self { witness, rule: rule.into(), line: None, row: None, source: None, age_s: None }
    }

    /// With the line that matched.
    #[must_use]
    pub fn with_line(mut self, line: impl Into<String>) -> Self {
        self.line = Some(line.into());
        self
    }

    /// With the screen row of the match.
    #[must_use]
    pub fn at_row(mut self, row: u16) -> Self {
        self.row = Some(row);
        self
    }
}

/// Serialises an age as whole seconds.
mod age_s {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes whole seconds.
    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(age: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
        match age {
            Some(age) => out.serialize_u64(age.as_secs()),
            None => out.serialize_none(),
        }
    }

    /// Reads whole seconds.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(input)?.map(Duration::from_secs))
    }
}

/// What a pane is doing, with every reason for saying so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaneVerdict {
    /// The one state.
    pub state: State,
    /// What covers the prompt, when `blocked` (or a limit menu).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<Overlay>,
    /// What a live dialog asks, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// What a live dialog offers, in order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub options: Vec<Choice>,
    /// What stands in the input row, whenever there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<InputRow>,
    /// Credentials, where the screen tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Mode of the input row or of tmux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// A submitted message waits in the agent's queue.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub queued: bool,
    /// The provider throttles the turn.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub throttled: bool,
    /// `k/N` while the agent retries after an error (`?` where the screen does not count).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrying: Option<String>,
    /// Kind of the last API error on the screen: `api-400`, `api-500`, `credit`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// Reset token of a limit, at most 40 characters, or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<String>,
    /// Flavour of a limit, words joined by `_`, or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Live background shells or monitors, counted in the process tree or by the footer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<u32>,
    /// Whether those were counted in the process tree; else the count is the screen's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_reliable: Option<bool>,
    /// Processor time of the counted shells and of all below them, in clock ticks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_cpu: Option<u64>,
    /// When the oldest of the counted shells started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_oldest: Option<Timestamp>,
    /// For how many seconds a pane that works has shown no new text, where that is long.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stale_s: Option<u64>,
    /// It is what was known before: most of the fleet changed at once, and that is not believed yet.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub held: bool,
    /// Name of the profile that judged the screen; `None` where no agent was recognised. Always written.
    pub agent: Option<String>,
    /// The agent's version, where known. Always written.
    pub agent_version: Option<String>,
    /// The folded-paste mark that stands in the input row, exactly as shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chip: Option<String>,
    /// Checksum of the text above the input row without digits; equal means the pane shows no new text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<u64>,
    /// Why, the deciding reason first.
    pub evidence: Vec<Evidence>,
}

impl PaneVerdict {
    /// A verdict with one reason and no further fields.
    pub fn of(state: State, evidence: Evidence) -> Self {
        Self {
            state,
            overlay: None,
            question: None,
            options: Vec::new(),
            input: None,
            auth: None,
            mode: None,
            queued: false,
            throttled: false,
            retrying: None,
            notice: None,
            reset_at: None,
            limit: None,
            background: None,
            background_reliable: None,
            background_cpu: None,
            background_oldest: None,
            stale_s: None,
            held: false,
            agent: None,
            agent_version: None,
            chip: None,
            content_hash: None,
            evidence: vec![evidence],
        }
    }

    /// The verdict on rows that begin so many rows below the screen's top.
    #[must_use]
    pub(super) fn moved_down(mut self, rows: u16) -> Self {
        for row in self.evidence.iter_mut().filter_map(|evidence| evidence.row.as_mut()) {
            *row = row.saturating_add(rows);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retiring_is_an_allow_list() {
        let open: Vec<_> = State::ALL.iter().filter(|s| s.allows_retire()).map(|s| s.word()).collect();
        assert_eq!(open, ["idle", "autosuggest-only", "idle-orphan-async", "absent"]);
    }

    #[test]
    fn agent_version_and_evidence_are_always_written() {
        let verdict = PaneVerdict::of(State::Unknown, Evidence::new(Witness::Screen, "x"));
        let value = serde_json::to_value(&verdict).unwrap();
        for field in ["agent", "agent_version", "evidence"] {
            assert!(value.get(field).is_some(), "{field}");
        }
        assert_eq!(serde_json::from_value::<PaneVerdict>(value).unwrap(), verdict);
        // What an earlier version wrote.
        assert!(serde_json::from_str::<PaneVerdict>(r#"{"state":"idle","evidence":[]}"#).is_ok());
    }

    #[test]
    fn every_word_reads_back() {
        for state in State::ALL {
            assert_eq!(State::parse(state.word()), Some(*state));
        }
    }
}
