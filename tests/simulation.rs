//! The real loop on a virtual clock, with a simulated tmux and simulated agents (`docs/simulation.md`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/sim/mod.rs"]
mod sim;

use nexus_watcher::sys::env::{Env as _, ProcessEnv};

use sim::plan::Plan;
use sim::run::{Report, run};
use sim::shrink::shrink;

/// Runs a plan; a failure is made smaller, and names the line that repeats it.
fn holds(plan: &Plan) -> Report {
    let report = run(plan);
    if report.failed.is_none() {
        return report;
    }
    let first = report.failed.clone();
    let small = ProcessEnv.get("NEXUS_SIM_SHRINK").as_deref() != Some("0");
    let (smaller, report) = if small { shrink(plan, report) } else { (plan.clone(), report) };
    panic!(
        "{}\n{:?}\nthe run fails: {first:?}\n  {plan}\nthe smallest one found: {:?}\n  {smaller}\n",
        report.trace.join("\n"),
        report.counts,
        report.failed
    );
}

/// Runs what `NEXUS_SIM_SEED` and its companions ask for; without them, one more seed.
#[test]
fn replay() {
    let report = holds(&Plan::from_env(&ProcessEnv, &Plan::short(9)));
    println!("{:?} {:?}", report.counts, report.sizes);
}

/// Runs these seeds with much trouble.
fn seeds_hold(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let counts = holds(&Plan::short(seed)).counts;
        assert!(counts.sent > 0 && counts.news > 0, "seed {seed} tells nothing: {counts:?}");
    }
}

#[test]
fn every_invariant_holds_whatever_goes_wrong() {
    seeds_hold(1..4);
}

/// Thirty days with fifty workers, and neither memory nor files grow.
#[test]
#[ignore = "takes a minute of a release build; scripts/simulate.sh runs it"]
fn a_month_of_fifty_workers() {
    let plan = Plan::from_env(&ProcessEnv, &Plan::long(1));
    let report = holds(&plan);
    println!("{plan}\n{:?}\n{:?}\n{:?}", report.counts, report.sizes.get(1), report.sizes.last());
    let (Some(early), Some(late)) = (report.sizes.get(1), report.sizes.last()) else { return };
    assert!(late.memory_kib <= early.memory_kib + 4096, "memory grows: {early:?} {late:?}");
    assert!(late.files <= early.files + early.files / 2 + 100, "files gather: {early:?} {late:?}");
    assert!(late.bytes <= early.bytes * 2 + (1 << 20), "files grow: {early:?} {late:?}");
}

/// Runs seed after seed for as long as `NEXUS_SIM_FOR` says, in seconds.
#[test]
#[ignore = "takes as long as it is told; scripts/simulate.sh runs it"]
fn many_seeds() {
    let number = |name: &str| ProcessEnv.non_empty(name).and_then(|text| text.parse::<u64>().ok());
    let until = std::time::Duration::from_secs(number("NEXUS_SIM_FOR").unwrap_or(60));
    let first = number("NEXUS_SIM_SEED").unwrap_or(1000);
    let started = nexus_watcher::sys::clock::Clock::System.now().uptime;
    let mut seed = first;
    while nexus_watcher::sys::clock::Clock::System.now().uptime.saturating_sub(started) < until {
        holds(&Plan { seed, ..Plan::from_env(&ProcessEnv, &Plan::short(seed)) });
        seed += 1;
    }
    println!("{} seeds from {first} hold", seed - first);
}

mod screens {
    //! The real classifier reads every screen that the simulation draws as what it is.

    use std::time::Duration;

    use nexus_watcher::agents::Profiles;
    use nexus_watcher::logic::pane::{InputRow, Overlay, PaneVerdict, ScreenFacts, State, judge_screen, wanted_style};

    use crate::sim::agent::{Agent, Dialog};
    use crate::sim::draw;

    fn judge(agent: &Agent) -> PaneVerdict {
        let profiles = Profiles::builtin().unwrap();
        let profile = profiles.get("claude").unwrap();
        let rows = draw::screen(agent, Duration::from_secs(100));
        let plain: Vec<String> = rows.iter().map(draw::plain).collect();
        let styled = wanted_style(profile, &plain).map(|(first, last)| {
            (first, rows[usize::from(first)..=usize::from(last)].iter().map(draw::styled).collect::<Vec<_>>())
        });
        let styled = styled.as_ref().map(|(first, rows)| (*first, rows.as_slice()));
        let facts = ScreenFacts {
            title: Some("✳ Claude Code".into()),
            version: Some("2.1.332".into()),
            ..ScreenFacts::default()
        };
        judge_screen(profile, &facts, &plain, styled)
    }

    fn check(change: impl FnOnce(&mut Agent), state: State, input: Option<InputRow>) -> PaneVerdict {
        let mut agent = Agent::new(Duration::from_secs(60));
        change(&mut agent);
        let verdict = judge(&agent);
        let rows: Vec<String> = draw::screen(&agent, Duration::from_secs(100)).iter().map(draw::plain).collect();
        assert_eq!((verdict.state, verdict.input), (state, input), "{:?}\n{}", verdict.evidence, rows.join("\n"));
        verdict
    }

    const AT: Duration = Duration::from_secs(90);

    #[test]
    fn every_simulated_screen_is_read_as_what_it_is() {
        let paste = |lines: usize| vec!["a line of text"; lines].join("\n");
        check(|_| {}, State::Idle, Some(InputRow::Blank));
        check(|a| a.start_turn(AT), State::Busy, Some(InputRow::Blank));
        check(|a| a.write("look at this", false), State::UserTyping, Some(InputRow::Typed));
        let chip = check(|a| a.paste(&paste(9), false, AT, Duration::ZERO), State::UserTyping, Some(InputRow::Typed));
        assert_eq!(chip.chip.as_deref(), Some("[Pasted text #1 +8 lines]"));
        check(|a| a.paste(&paste(2), false, AT, Duration::ZERO), State::UserTyping, Some(InputRow::Typed));
        let permission = check(|a| a.ask(Dialog::Permission, AT), State::Blocked, None);
        assert_eq!(permission.overlay, Some(Overlay::Permission));
        assert_eq!(check(|a| a.ask(Dialog::Ask, AT), State::Blocked, None).overlay, Some(Overlay::AskUq));
        let queued = |lines: usize| {
            move |a: &mut Agent| {
                a.start_turn(AT);
                a.paste(&vec!["a line"; lines].join("\n"), true, AT, Duration::ZERO);
                a.enter(AT);
            }
        };
        for lines in [1, 30] {
            assert!(check(queued(lines), State::Busy, Some(InputRow::Ghost)).queued);
        }
        let turns = |times: usize| {
            move |a: &mut Agent| {
                for _ in 0..times {
                    a.paste(&vec!["a line"; 30].join("\n"), true, AT, Duration::ZERO);
                    a.enter(AT);
                    a.end_turn(AT);
                }
            }
        };
        for times in [1, 5] {
            check(turns(times), State::Idle, Some(InputRow::Blank));
        }
        check(
            |a| {
                a.start_turn(AT);
                a.write("wait", false);
            },
            State::UserTyping,
            Some(InputRow::Typed),
        );
    }
}
