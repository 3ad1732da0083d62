//! `ng pane-state`: what a pane is doing, and why. A saved screen is judged the way a live one is.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::pane_explain::{self, Explain};
use super::pane_live::{self, Answer, Which};
use super::{Invocation, Verb, render};
use super::{pane_report, pane_saved};
use crate::agents::Profiles;
use crate::logic::ids::PaneId;
use crate::logic::pane::{Evidence, PaneVerdict, State};
use crate::logic::snapshot::ObservedPane;
use crate::logic::time::age_text;

pub(super) const VERB: Verb = Verb { command, run, usage: 64 };

fn command() -> Command {
    let command = Command::new("pane-state")
        .about("Say what a pane is doing, and why")
        .after_help("Exit: 0 classified (or saved), 1 a report was declined, 2 could not look or save, 3 no such window, 64 usage.")
        .arg(
            Arg::new("window")
                .value_name("WINDOW")
                .help("A window by name, index, @id or session:index, or a pane by %id"),
        )
        .arg(
            Arg::new("all")
                .long("all")
                .action(ArgAction::SetTrue)
                .help("Every watched window (or those of session WINDOW)"),
        )
        .arg(
            Arg::new("states")
                .long("states")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["window", "all"])
                .help("Print every word that `state=` can be, one a line"),
        )
        .arg(Arg::new("agent").long("agent").value_name("NAME").help("Profile to judge by; otherwise each is tried"))
        .arg(
            Arg::new("profile")
                .long("profile")
                .value_name("FILE")
                .action(ArgAction::Append)
                .value_parser(clap::value_parser!(PathBuf))
                .help("Judge with this profile file too (`ng agents check`), before it is put in place"),
        )
        .arg(
            Arg::new("explain")
                .long("explain")
                .action(ArgAction::SetTrue)
                .help("Print every reason, and what the screen and each witness showed"),
        );
    pane_report::args(pane_saved::args(command))
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    if args.get_flag("states") {
        for state in State::ALL {
            render::line(state.word());
        }
        return Ok(0);
    }
    let given: Vec<&PathBuf> = args.get_many("profile").into_iter().flatten().collect();
    let profiles = match invocation.profiles_with(&given) {
        Ok(profiles) => profiles,
        Err(problem) => return Ok(refuse(64, &format!("--profile: {problem:#}"))),
    };
    let wanted = args.get_one::<String>("agent");
    if let Some(name) = wanted
        && profiles.get(name).is_none()
    {
        let known: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        render::note(&format!("ng pane-state: no agent profile {name:?}; known are: {}", known.join(", ")));
        return Ok(64);
    }
    if args.get_flag("report") {
        return pane_report::run(invocation, args, profiles);
    }
    match pane_saved::judge(args, &profiles) {
        None => live(invocation, args, profiles),
        Some(Ok(answered)) => {
            print(invocation.json, &answered)?;
            Ok(0)
        }
        Some(Err(error)) => Ok(refuse(2, &format!("{error:#}"))),
    }
}

/// Judges live panes.
fn live(invocation: &Invocation, args: &ArgMatches, profiles: Profiles) -> anyhow::Result<u8> {
    let window = args.get_one::<String>("window").map(String::as_str);
    let which = match (args.get_flag("all"), window) {
        (true, session) => Which::All(session),
        (false, Some(window)) => Which::One(window),
        (false, None) => {
            render::note(
                "ng pane-state: which pane? Give a window, %pane or --all, or --capture FILE for a saved screen",
            );
            return Ok(64);
        }
    };
    let panes = match pane_live::look(invocation, which, profiles, args.get_flag("explain")) {
        Ok(Answer::Judged(panes)) => panes,
        Ok(Answer::CannotLook(why)) => return Ok(refuse(2, &why)),
        Ok(Answer::NoSuchWindow(why)) => return Ok(refuse(3, &format!("{why}; list them with: ng pane-state --all"))),
        Ok(Answer::Ambiguous(why)) => return Ok(refuse(64, &why)),
        Err(error) => return Ok(refuse(2, &format!("{error:#}"))),
    };
    let answered: Vec<Answered> = panes.into_iter().map(answered).collect();
    if invocation.json && args.get_flag("all") {
        let documents: Vec<Document<'_>> = answered.iter().map(document).collect();
        render::json(&documents)?;
        return Ok(0);
    }
    for one in &answered {
        print(invocation.json, one)?;
    }
    Ok(0)
}

/// Says why there is no verdict.
pub(super) fn refuse(code: u8, why: &str) -> u8 {
    render::note(&format!("ng pane-state: {why}"));
    code
}

/// What the line of a verdict calls the pane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Label {
    /// Index of the window, if it is a live one.
    pub(crate) window: Option<u32>,
    /// Name of the window, or of the saved screen.
    pub(crate) name: Option<String>,
    /// Whether it is its session's current window.
    pub(crate) active: bool,
    /// The pane, if it is a live one.
    pub(crate) pane: Option<PaneId>,
}

/// A verdict as it is answered.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    /// What the pane is called.
    pub(super) label: Label,
    /// What it is doing.
    pub(super) verdict: PaneVerdict,
    /// What that rests on, where it was asked for.
    pub(super) explain: Option<Explain>,
}

/// The answer about a live pane.
fn answered((pane, explain): (ObservedPane, Option<Explain>)) -> Answered {
    let label = Label {
        window: Some(pane.facts.window_index),
        name: Some(pane.facts.window_name.0),
        active: pane.facts.window_active,
        pane: Some(pane.facts.pane),
    };
    Answered { label, verdict: pane.verdict, explain }
}

/// Prints a verdict as a line, with reasons, or as JSON.
fn print(json: bool, answered: &Answered) -> anyhow::Result<()> {
    if json {
        return render::json(&document(answered));
    }
    render::line(&verdict_line(&answered.label, &answered.verdict));
    if let Some(explain) = &answered.explain {
        for evidence in &answered.verdict.evidence {
            render::line(&evidence_line(evidence));
        }
        for line in pane_explain::lines(explain, &answered.verdict) {
            render::line(&line);
        }
    }
    Ok(())
}

/// The JSON form of a verdict.
fn document(answered: &Answered) -> Document<'_> {
    let Answered { label, verdict, explain } = answered;
    let name = label.name.as_deref();
    Document { window: label.window, name, pane: label.pane, active: label.active, verdict, explain: explain.as_ref() }
}

/// A verdict as JSON.
#[derive(serde::Serialize)]
struct Document<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pane: Option<PaneId>,
    active: bool,
    #[serde(flatten)]
    verdict: &'a PaneVerdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<&'a Explain>,
}

/// The line of `protocol-facts` §3.2: words separated by one space, so that shell tools can split it.
pub(crate) fn verdict_line(label: &Label, verdict: &PaneVerdict) -> String {
    let mut words = vec![format!("state={}", verdict.state), format!("active={}", u8::from(label.active))];
    words.push(format!("window={}", label.window.map_or_else(|| "-".to_owned(), |index| index.to_string())));
    words.push(format!("name={}", label.name.as_deref().map_or_else(|| "-".to_owned(), word)));
    let mut put = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            words.push(format!("{key}={}", word(&value)));
        }
    };
    // The index and the name of a further server may be those of another window.
    put("pane", label.pane.filter(|pane| pane.server() > 0).map(|pane| pane.to_string()));
    put("input", verdict.input.map(|input| input.word().to_owned()));
    put("overlay", verdict.overlay.map(|overlay| overlay.word().to_owned()));
    // One word each; the labels and the question are in the JSON and the explanation.
    put("options", (!verdict.options.is_empty()).then(|| verdict.options.len().to_string()));
    put("option", verdict.options.iter().find(|option| option.under_cursor).map(|option| option.label.clone()));
    put("auth", verdict.auth.map(|auth| auth.word().to_owned()));
    put("mode", verdict.mode.map(|mode| mode.word().to_owned()));
    put("queued", verdict.queued.then(|| "1".to_owned()));
    put("throttled", verdict.throttled.then(|| "1".to_owned()));
    put("retrying", verdict.retrying.clone());
    put("notice", verdict.notice.clone());
    put("reset_at", verdict.reset_at.clone());
    put("limit", verdict.limit.clone());
    put("bg_shells", verdict.background.map(|count| count.to_string()));
    put("bg_reliable", verdict.background_reliable.map(|reliable| u8::from(reliable).to_string()));
    put("bg_cpu", verdict.background_cpu.map(|ticks| ticks.to_string()));
    put("bg_oldest_start", verdict.background_oldest.map(|at| at.secs().to_string()));
    put("stale", verdict.stale_s.map(|secs| secs.to_string()));
    put("held", verdict.held.then(|| "1".to_owned()));
    let first = verdict.evidence.first();
    match verdict.state {
        State::Absent => put("evidence", first.map(|evidence| evidence.rule.clone())),
        State::Unknown => put("reason", first.map(|evidence| evidence.rule.clone())),
        _ => {}
    }
    let known = |field: &Option<String>| Some(field.clone().unwrap_or_else(|| "unknown".to_owned()));
    put("agent", known(&verdict.agent));
    put("agent_version", known(&verdict.agent_version));
    put("content_hash", verdict.content_hash.map(|hash| hash.to_string()));
    words.join(" ")
}

/// A value as one word of the line; names and screen text are data and may hold anything.
fn word(value: &str) -> String {
    value.chars().map(|ch| if ch.is_whitespace() || ch.is_control() { '_' } else { ch }).collect()
}

/// One reason, for people.
fn evidence_line(evidence: &Evidence) -> String {
    let mut line = format!("  {} {}", evidence.witness, evidence.rule);
    if let Some(row) = evidence.row {
        // Writing to a String cannot fail.
        let _infallible = write!(line, " row={row}");
    }
    if let Some(age) = evidence.age_s {
        let _infallible = write!(line, " age={}", age_text(age));
    }
    if let Some(source) = &evidence.source {
        let _infallible = write!(line, " file={source}");
    }
    let shown: String =
        evidence.line.iter().flat_map(|text| text.chars()).map(|ch| if ch.is_control() { ' ' } else { ch }).collect();
    if !shown.trim().is_empty() {
        let _infallible = write!(line, ": {}", shown.trim());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::pane::{InputRow, Overlay, Witness};
    use crate::logic::time::Timestamp;

    fn check(label: &Label, verdict: &PaneVerdict, expected: &str) {
        assert_eq!(verdict_line(label, verdict), expected);
    }

    #[test]
    fn the_line_has_fixed_words_first_and_only_the_fields_that_are_known() {
        let label = Label { window: Some(3), name: Some("w3".into()), active: true, pane: Some(PaneId::new(7)) };
        let mut verdict = PaneVerdict::of(State::Blocked, Evidence::new(Witness::Screen, "claude-permission"));
        verdict.overlay = Some(Overlay::Permission);
        verdict.agent = Some("claude".into());
        check(
            &label,
            &verdict,
            "state=blocked active=1 window=3 name=w3 overlay=permission agent=claude agent_version=unknown",
        );
        check(
            &Label { pane: Some(PaneId::new(7).on(1)), ..label.clone() },
            &verdict,
            "state=blocked active=1 window=3 name=w3 pane=1/%7 overlay=permission agent=claude agent_version=unknown",
        );
        verdict.input = Some(InputRow::Unclear);
        verdict.retrying = Some("4/10".into());
        verdict.background = Some(2);
        verdict.background_reliable = Some(true);
        verdict.background_cpu = Some(7);
        verdict.background_oldest = Some(Timestamp::from_secs(1000));
        let line = verdict_line(&label, &verdict);
        assert!(line.contains(" bg_shells=2 bg_reliable=1 bg_cpu=7 bg_oldest_start=1000 "), "{line}");
        assert!(line.contains(" input=? ") && line.contains(" retrying=4/10 "), "{line}");
    }

    #[test]
    fn a_name_cannot_forge_a_field() {
        let label = Label { window: Some(0), name: Some("x state=idle\nstate=idle".into()), active: false, pane: None };
        let verdict = PaneVerdict::of(State::Absent, Evidence::new(Witness::Tmux, "pane_dead"));
        check(
            &label,
            &verdict,
            "state=absent active=0 window=0 name=x_state=idle_state=idle evidence=pane_dead agent=unknown agent_version=unknown",
        );
    }

    #[test]
    fn a_reason_is_one_line_without_control_characters() {
        let evidence = Evidence::new(Witness::Screen, "claude-spinner").with_line("\u{1b}[2J a\nb ").at_row(7);
        assert_eq!(evidence_line(&evidence), "  screen claude-spinner row=7: [2J a b");
    }
}
