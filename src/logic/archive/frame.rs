//! One recorded screen with everything that its verdict rests on, so that it can be judged again offline: by the same
//! rules with the same result, by others to see what they would have said.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::logic::pane::activity::Activity;
use crate::logic::pane::{
    self, HookFacts, LimitStamp, PaneVerdict, ProcessFacts, Profile, ScreenFacts, State, judge_capture,
};
use crate::logic::screen::{Capture, Shape};
use crate::logic::snapshot::PaneFacts;
use crate::logic::time::Timestamp;

/// What wrote a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Versions {
    /// Version of `ng`.
    pub ng: String,
    /// Version of the tmux server.
    pub tmux: String,
    /// Name and version of the profile that judged; none where no agent was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<(String, u32)>,
}

/// One recorded screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// When it was seen. Unit: milliseconds since 1970.
    pub at: Timestamp,
    /// What wrote it.
    #[serde(default)]
    pub versions: Versions,
    /// What tmux said of the pane.
    pub facts: PaneFacts,
    /// What the processes below it said.
    #[serde(default)]
    pub process: ProcessFacts,
    /// What its hooks wrote last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookFacts>,
    /// The stamp of a usage limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitStamp>,
    /// For how many seconds a hook counted (`monitor.heartbeat`...).
    #[serde(default)]
    pub hook_fresh_s: u64,
    /// When its text was last seen to change, of an agent of which nothing else is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_changed: Option<Timestamp>,
    /// Whether private text was replaced before it was written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// The visible screen, a row each, with the escape sequences of colours and attributes. The plain rows are these
    /// without the sequences.
    pub rows: Vec<String>,
    /// What was made of it then, by one look: without what was seen before, which a frame can't hold.
    pub verdict: PaneVerdict,
}

impl Frame {
    /// Judges the screen by a profile, with the witnesses of then.
    pub fn judge(&self, profile: Option<&Profile>) -> PaneVerdict {
        let screen = match profile.filter(|_| self.facts.dead.is_none()) {
            Some(profile) => self.judge_text(profile),
            None => pane::nothing_to_judge(),
        };
        let fresh = Duration::from_secs(self.hook_fresh_s);
        let verdict = pane::fuse(&self.facts, &self.process, self.hook.as_ref(), screen, self.at, fresh);
        pane::with_limit_stamp(verdict, self.limit.as_ref(), self.hook.as_ref(), self.at)
    }

    /// What the text says, and of an unknown agent whether it changes.
    fn judge_text(&self, profile: &Profile) -> PaneVerdict {
        let verdict = judge_capture(profile, &self.screen_facts(), &self.capture());
        match verdict.content_hash {
            Some(hash) if profile.screen.layout.shape == Shape::None => {
                Activity::of(hash, self.text_changed).weigh(verdict, self.at)
            }
            _ => verdict,
        }
    }

    /// The screen.
    pub fn capture(&self) -> Capture {
        Capture::from_rows(self.rows.clone())
    }

    /// What was known of the screen besides its text.
    pub fn screen_facts(&self) -> ScreenFacts {
        ScreenFacts::from(&self.facts).with_version(self.process.version.clone())
    }

    /// Whether this is worth a record after `before`, a frame of the same pane: its screen is another, or who runs in
    /// it, or what was made of it. Times, counters and the cursor alone are not.
    pub fn is_news_after(&self, before: &Self) -> bool {
        let pane = |frame: &Self| {
            let facts = &frame.facts;
            let flags = (facts.dead.is_some(), facts.in_mode, facts.alternate_on, facts.size);
            (flags, facts.window_name.clone(), facts.title.clone())
        };
        let process = |frame: &Self| {
            let process = &frame.process;
            let who = (process.agent.clone(), process.version.clone(), process.agent_pid);
            (who, process.liveness, process.unclear, process.shell, process.background_shells)
        };
        let hook = |frame: &Self| frame.hook.as_ref().map(|hook| (hook.state.clone(), hook.event.clone()));
        self.rows != before.rows
            || pane(self) != pane(before)
            || process(self) != process(before)
            || hook(self) != hook(before)
            || !super::differences(&before.verdict, &self.verdict).is_empty()
    }

    /// The agent and its version for a table: by the verdict, else by the processes.
    pub fn agent(&self) -> (String, String) {
        let name = self.verdict.agent.clone().or_else(|| self.process.agent.clone());
        let version = self.verdict.agent_version.clone().or_else(|| self.process.version.clone());
        (name.unwrap_or_else(|| "-".to_owned()), version.unwrap_or_else(|| "-".to_owned()))
    }
}

/// The verdict on a frame whose judgement panicked: the rules are not made for it.
pub fn panicked() -> PaneVerdict {
    PaneVerdict::of(State::Unknown, pane::Evidence::new(pane::Witness::Screen, "judging-panicked"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::logic::pane::{Evidence, Witness};
    use crate::logic::worker::scope::tests::pane;

    pub(crate) fn frame(rows: &[&str]) -> Frame {
        Frame {
            at: Timestamp::from_secs(1000),
            versions: Versions::default(),
            facts: pane(1, "w1"),
            process: ProcessFacts::default(),
            hook: None,
            limit: None,
            hook_fresh_s: 30,
            text_changed: None,
            masked: false,
            rows: rows.iter().map(|row| (*row).to_owned()).collect(),
            verdict: PaneVerdict::of(State::Unknown, Evidence::new(Witness::Screen, "x")),
        }
    }

    #[test]
    fn a_frame_is_news_when_screen_agent_hook_or_verdict_changed_and_not_by_time_alone() {
        let check = |expected: bool, change: &dyn Fn(&mut Frame)| {
            let before = frame(&["a"]);
            let mut after = before.clone();
            change(&mut after);
            assert_eq!(after.is_news_after(&before), expected, "{after:?}");
        };
        check(false, &|_| {});
        check(false, &|frame| frame.at = Timestamp::from_secs(2000));
        check(false, &|frame| frame.facts.cursor = (3, 4));
        check(false, &|frame| frame.facts.activity = Timestamp::from_secs(2000));
        check(false, &|frame| frame.verdict.evidence[0].age_s = Some(Duration::from_secs(9)));
        check(true, &|frame| frame.rows[0].push('b'));
        check(true, &|frame| frame.facts.title.push('b'));
        check(true, &|frame| frame.facts.in_mode = true);
        check(true, &|frame| frame.process.agent = Some("claude".into()));
        check(true, &|frame| frame.hook = Some(HookFacts { state: "busy".into(), ..HookFacts::default() }));
        check(true, &|frame| frame.verdict.state = State::Busy);
    }

    #[test]
    fn a_frame_of_an_unknown_writer_reads_with_what_it_lacks_as_unknown() {
        let mut value = serde_json::to_value(frame(&["a"])).unwrap();
        for key in ["versions", "process", "hook_fresh_s"] {
            value.as_object_mut().unwrap().remove(key);
        }
        value["a-later-key"] = 1.into();
        let read: Frame = serde_json::from_value(value).unwrap();
        assert_eq!((read.rows.len(), read.process), (1, ProcessFacts::default()));
    }
}
