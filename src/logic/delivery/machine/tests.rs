//! The machine against a scripted pane.

use super::super::gate::tests::seen;
use super::super::gate::{Chip, Composer};
use super::*;
use crate::logic::ids::Signature;
use crate::logic::pane::{InputRow, State};

const LIMITS: Limits = Limits {
    settle: Duration::from_secs(5),
    confirm: Duration::from_secs(20),
    look_every: Duration::from_millis(50),
    screen_counts: true,
};

fn signature() -> Signature {
    Signature { iso: "2026-05-11T13:42:01-07:00".into(), nonce: "a1b2c3".into() }
}

/// A text with 41 line breaks.
fn pasted() -> Pasted {
    Pasted::new(signature(), format!("--- nexus-emit ---{}\n{}", "\na line".repeat(40), signature().trailer()))
}

fn idle() -> Target {
    Target::Present(Box::new(seen(State::Idle, Some(InputRow::Blank))))
}

fn in_box(rows: &[&str], chip: Option<Chip>) -> Target {
    let mut target = seen(State::UserTyping, Some(InputRow::Typed));
    let rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
    target.composer = Some(Composer { text: rows.concat(), rows, chip });
    Target::Present(Box::new(target))
}

fn own_text() -> Target {
    in_box(&pasted().body.lines().collect::<Vec<_>>(), None)
}

fn own_chip() -> Target {
    in_box(&["[Pasted text #1 +41 lines]"], Some(Chip { text: "[Pasted text #1 +41 lines]".into(), lines: Some(41) }))
}

fn submitted() -> Target {
    let mut target = seen(State::Busy, Some(InputRow::Blank));
    target.outside = vec![signature().trailer()];
    Target::Present(Box::new(target))
}

/// A pane that answers each look from a script (the last answer repeats), counts acts, and can prove on request.
struct Script {
    looks: Vec<Target>,
    looked: usize,
    paste: Vec<Happened>,
    pastes: usize,
    enter: Vec<Happened>,
    enters: usize,
    proof_after_enters: Option<(usize, Proof)>,
    clock: Duration,
    /// When Enter was pressed.
    entered_at: Vec<Duration>,
    /// The fold that was written down.
    noted: Option<Fold>,
}

impl Script {
    fn new(looks: &[Target]) -> Self {
        Self {
            looks: looks.to_vec(),
            looked: 0,
            paste: vec![Happened::Acted],
            pastes: 0,
            enter: vec![Happened::Acted],
            enters: 0,
            proof_after_enters: None,
            clock: Duration::from_secs(1000),
            entered_at: Vec::new(),
            noted: None,
        }
    }

    fn run(&mut self, mut delivery: Delivery) -> Outcome {
        let mut step = delivery.start();
        for _ in 0..10_000 {
            let happened = match step {
                Step::Done(outcome) => return outcome,
                Step::Look => {
                    let target = self.looks[self.looked.min(self.looks.len() - 1)].clone();
                    self.looked += 1;
                    Happened::Seen(target)
                }
                Step::Paste { .. } => {
                    self.pastes += 1;
                    self.paste[(self.pastes - 1).min(self.paste.len() - 1)].clone()
                }
                Step::Enter { require, .. } => {
                    assert_eq!(require.len(), 1, "an Enter always requires our own text");
                    self.enters += 1;
                    self.entered_at.push(self.clock);
                    self.enter[(self.enters - 1).min(self.enter.len() - 1)].clone()
                }
                Step::NoteFold(fold) => {
                    assert_eq!(self.enters, 0, "a fold is written down before Enter");
                    self.noted = Some(fold);
                    Happened::Noted
                }
                Step::Prove => Happened::Proofs(
                    self.proof_after_enters.filter(|(needed, _)| self.enters >= *needed).map(|(_, proof)| proof),
                ),
                Step::Sleep(time) => {
                    self.clock += time;
                    Happened::Slept
                }
            };
            step = delivery.next(self.clock, happened);
        }
        panic!("the delivery does not end");
    }
}

fn fresh() -> Delivery {
    Delivery::new(pasted(), LIMITS)
}

fn hook_after(enters: usize) -> (usize, Proof) {
    (enters, Proof { by: ProofBy::Hook, queued: false })
}

#[test]
fn an_idle_box_takes_one_paste_and_one_enter() {
    let mut pane = Script::new(&[idle(), own_text(), submitted()]);
    assert_eq!(pane.run(fresh()), Outcome::Received(Proof { by: ProofBy::Screen, queued: false }));
    assert_eq!((pane.pastes, pane.enters), (1, 1));
}

#[test]
fn a_folded_paste_of_the_right_size_is_submitted_and_proven_by_the_hook() {
    let mut pane = Script::new(&[idle(), own_chip(), own_chip()]);
    pane.proof_after_enters = Some(hook_after(1));
    assert_eq!(pane.run(fresh()), Outcome::Received(Proof { by: ProofBy::Hook, queued: false }));
    assert_eq!((pane.pastes, pane.enters), (1, 1));
}

#[test]
fn text_that_does_not_show_gets_no_enter() {
    let mut pane = Script::new(&[idle()]);
    assert_eq!(pane.run(fresh()).code(), 4);
    assert_eq!((pane.pastes, pane.enters), (1, 0));
}

#[test]
fn a_dialog_that_opens_after_the_paste_gets_no_enter() {
    let mut dialog = seen(State::Blocked, None);
    dialog.composer = None;
    let mut pane = Script::new(&[idle(), Target::Present(Box::new(dialog))]);
    assert_eq!(pane.run(fresh()).code(), 4);
    assert_eq!((pane.pastes, pane.enters), (1, 0));
}

#[test]
fn a_draft_that_merged_with_our_text_gets_no_enter() {
    for text in ["delete all ", ""] {
        let body = format!("{text}{}{}", pasted().body, if text.is_empty() { " y" } else { "" });
        let mut pane = Script::new(&[idle(), in_box(&body.lines().collect::<Vec<_>>(), None)]);
        assert_eq!(pane.run(fresh()).code(), 4);
        assert_eq!((pane.pastes, pane.enters), (1, 0));
    }
}

#[test]
fn somebody_elses_fold_gets_no_enter() {
    let other =
        in_box(&["[Pasted text #1 +7 lines]"], Some(Chip { text: "[Pasted text #1 +7 lines]".into(), lines: Some(7) }));
    let mut pane = Script::new(&[idle(), other]);
    assert_eq!(pane.run(fresh()).code(), 4);
    assert_eq!(pane.enters, 0);
}

#[test]
fn a_swallowed_enter_is_pressed_again_but_the_text_never_pasted_again() {
    let mut pane = Script::new(&[idle(), own_text()]);
    pane.proof_after_enters = Some(hook_after(3));
    assert_eq!(pane.run(fresh()).code(), 0);
    assert_eq!((pane.pastes, pane.enters), (1, 3));
    // An agent ignores an Enter that comes too soon after the last, so each wait is longer than the one before.
    let [first, second, third] = pane.entered_at.as_slice() else { panic!("{:?}", pane.entered_at) };
    assert!(*second >= *first + ENTER_GAPS[0] && *third >= *second + ENTER_GAPS[1], "{:?}", pane.entered_at);
    assert!(Duration::from_millis(500) <= ENTER_GAPS[0] && ENTER_GAPS[0] < ENTER_GAPS[1]);
}

#[test]
fn an_enter_that_is_refused_for_ever_ends_and_is_not_tried_without_pause() {
    let mut pane = Script::new(&[idle(), own_text()]);
    pane.enter = vec![Happened::Refused(Hold::CopyMode)];
    assert_eq!(pane.run(fresh()).code(), 4);
    let tries = usize::try_from(LIMITS.confirm.as_millis() / ENTER_AGAIN.as_millis()).unwrap();
    assert!((2..=tries + 1).contains(&pane.enters), "{}", pane.enters);
    let mut in_mode = own_text();
    if let Target::Present(seen) = &mut in_mode {
        seen.in_mode = true;
    }
    let mut pane = Script::new(&[idle(), own_text(), in_mode]);
    pane.enter = vec![Happened::Refused(Hold::CopyMode)];
    assert_eq!((pane.run(fresh()).code(), pane.enters), (4, 1), "no key is tried while a mode is seen");
}

#[test]
fn enter_is_pressed_three_times_at_most() {
    let mut pane = Script::new(&[idle(), own_text()]);
    assert_eq!(
        pane.run(fresh()),
        Outcome::Unknown("the text stands in the input box and Enter did not submit it".into())
    );
    assert_eq!((pane.pastes, pane.enters), (1, 3));
}

#[test]
fn a_hold_types_nothing() {
    let mut draft = seen(State::UserTyping, Some(InputRow::Typed));
    draft.composer = Some(Composer { text: "merge only after".into(), ..Composer::default() });
    for (target, code) in [
        (Target::Present(Box::new(draft)), 7),
        (Target::CannotTell("no answer".into()), 7),
        (Target::Absent("no window".into()), 2),
        (Target::NoTmux("no tmux".into()), 1),
    ] {
        let mut pane = Script::new(&[target]);
        assert_eq!(pane.run(fresh()).code(), code);
        assert_eq!((pane.pastes, pane.enters), (0, 0));
    }
}

#[test]
fn a_failed_paste_of_which_nothing_was_typed_is_tried_once_more() {
    let mut pane = Script::new(&[idle(), idle(), own_text(), submitted()]);
    pane.paste = vec![Happened::NothingTyped("refused".into()), Happened::Acted];
    assert_eq!(pane.run(fresh()).code(), 0);
    assert_eq!(pane.pastes, 2);
    let mut pane = Script::new(&[idle()]);
    pane.paste = vec![Happened::NothingTyped("refused".into())];
    assert_eq!(pane.run(fresh()).code(), 3);
    assert_eq!((pane.pastes, pane.enters), (2, 0));
}

#[test]
fn a_paste_that_may_have_landed_is_not_repeated() {
    let mut pane = Script::new(&[idle(), own_text(), submitted()]);
    pane.paste = vec![Happened::MayHaveTyped("timeout".into())];
    assert_eq!(pane.run(fresh()).code(), 0);
    assert_eq!(pane.pastes, 1);
    let mut pane = Script::new(&[idle()]);
    pane.paste = vec![Happened::MayHaveTyped("timeout".into())];
    assert_eq!(pane.run(fresh()).code(), 4);
    assert_eq!((pane.pastes, pane.enters), (1, 0));
}

#[test]
fn a_refused_act_is_a_hold_and_costs_no_attempt() {
    let mut pane = Script::new(&[idle()]);
    pane.paste = vec![Happened::Refused(Hold::CopyMode)];
    assert_eq!(pane.run(fresh()), Outcome::Held(Hold::CopyMode));
    assert_eq!((pane.pastes, pane.enters), (1, 0));
}

#[test]
fn a_pane_replaced_after_the_paste_gets_no_enter() {
    let mut other = seen(State::UserTyping, Some(InputRow::Typed));
    other.composer = Some(Composer { text: "a1b2c3".into(), rows: vec!["a1b2c3".into()], chip: None });
    other.pid = 99;
    let mut pane = Script::new(&[idle(), Target::Present(Box::new(other))]);
    assert_eq!(pane.run(fresh()).code(), 4);
    assert_eq!(pane.enters, 0);
}

#[test]
fn the_screen_is_no_witness_when_it_is_switched_off() {
    let limits = Limits { screen_counts: false, ..LIMITS };
    let mut pane = Script::new(&[idle(), own_text(), submitted()]);
    assert_eq!(pane.run(Delivery::new(pasted(), limits)).code(), 4);
    assert_eq!((pane.pastes, pane.enters), (1, 1));
}

fn settle(looks: &[Target]) -> (Outcome, Script) {
    settle_with(None, looks)
}

/// Settles an earlier delivery of which this fold was written down.
fn settle_with(fold: Option<Fold>, looks: &[Target]) -> (Outcome, Script) {
    let mut pane = Script::new(looks);
    let seen = seen(State::Idle, None);
    let delivery = Delivery::settle_earlier(pasted(), (seen.key, seen.pid), fold, LIMITS, pane.clock);
    let outcome = pane.run(delivery);
    (outcome, pane)
}

#[test]
fn an_earlier_delivery_is_settled_without_a_paste() {
    let (outcome, pane) = settle(&[submitted()]);
    assert_eq!(outcome, Outcome::Received(Proof { by: ProofBy::Screen, queued: false }));
    assert_eq!((pane.pastes, pane.enters), (0, 0));
}

/// A busy pane whose agent keeps a message with this first row in its queue.
fn queue(row: &str) -> Target {
    let mut target = seen(State::Busy, Some(InputRow::Ghost));
    target.verdict.queued = true;
    target.outside = vec![row.to_owned()];
    Target::Present(Box::new(target))
}

#[test]
fn somebody_elses_message_in_the_queue_settles_nothing() {
    // Ours may be among what the queue does not show, so its news are not told again yet either.
    let (outcome, _) = settle(&[queue("❯ please look at the tests")]);
    assert_eq!(outcome, Outcome::Held(Hold::Queue));
    let (outcome, _) = settle(&[queue("❯ === nexus state changed at 2026-05-11T13:42:01-07:00 (poll) ===")]);
    assert_eq!(outcome, Outcome::Received(Proof { by: ProofBy::Screen, queued: true }));
}

#[test]
fn a_queue_mark_that_came_without_our_enter_proves_nothing() {
    // Our text was taken out of the box before the Enter, and somebody queued something else.
    let mut pane = Script::new(&[idle(), own_chip(), queue("❯ please look at the tests")]);
    pane.enter = vec![Happened::Refused(Hold::Changed)];
    let outcome = pane.run(fresh());
    assert!(matches!(outcome, Outcome::Unknown(_)), "{outcome:?}");
}

#[test]
fn our_own_text_left_in_the_box_gets_one_enter_if_it_is_provably_ours() {
    let (outcome, pane) = settle(&[own_text(), submitted()]);
    assert_eq!(outcome.code(), 0);
    assert_eq!((pane.pastes, pane.enters), (0, 1));
}

#[test]
fn a_bare_fold_left_in_the_box_is_held() {
    let (outcome, pane) = settle(&[own_chip()]);
    assert_eq!(outcome, Outcome::Held(Hold::Unproven));
    assert_eq!((pane.pastes, pane.enters), (0, 0));
}

#[test]
fn our_text_with_a_draft_beside_it_is_held_until_it_is_sent_or_cleared() {
    let merged = format!("{} and then", pasted().body);
    let merged = in_box(&merged.lines().collect::<Vec<_>>(), None);
    let (outcome, pane) = settle(&[merged]);
    assert_eq!(outcome, Outcome::Held(Hold::Unproven));
    assert_eq!((pane.pastes, pane.enters), (0, 0));
}

#[test]
fn an_earlier_delivery_without_a_trace_stays_unknown() {
    let (outcome, pane) = settle(&[idle()]);
    assert_eq!(outcome.code(), 4);
    assert_eq!((pane.pastes, pane.enters), (0, 0));
}

#[test]
fn nothing_is_settled_while_a_dialog_covers_the_box() {
    let mut target = seen(State::Blocked, None);
    target.composer = None;
    let (outcome, pane) = settle(&[Target::Present(Box::new(target))]);
    assert_eq!(outcome, Outcome::Held(Hold::Dialog));
    assert_eq!((pane.pastes, pane.enters), (0, 0));
}

#[test]
fn nothing_is_settled_while_the_pane_cannot_be_read() {
    let (outcome, pane) = settle(&[Target::CannotTell("no answer".into())]);
    assert_eq!(outcome, Outcome::Held(Hold::CannotTell));
    assert_eq!((pane.pastes, pane.enters), (0, 0));
}

fn noted(text: &str, agent_pid: u32) -> Fold {
    Fold { text: text.into(), agent_pid }
}

#[test]
fn a_fold_is_written_down_before_enter_and_looked_at_again() {
    let mut pane = Script::new(&[idle(), own_chip(), own_chip(), submitted()]);
    assert_eq!(pane.run(fresh()).code(), 0);
    assert_eq!(pane.noted, Some(noted("[Pasted text #1 +41 lines]", 43)));
    assert_eq!((pane.pastes, pane.enters), (1, 1));
    // What changes while it is written down is seen.
    let mut pane = Script::new(&[idle(), own_chip(), in_box(&["[Pasted text #1 +41 lines] y"], None)]);
    assert_eq!((pane.run(fresh()).code(), pane.enters), (4, 0));
}

#[test]
fn a_fold_that_was_written_down_is_sent_after_a_restart_and_no_other_is() {
    let known = "[Pasted text #1 +41 lines]";
    let check = |fold: Option<Fold>, target: Target, sent: bool| {
        let what = format!("{fold:?} {target:?}");
        let (outcome, pane) = settle_with(fold, &[target]);
        assert_eq!(pane.enters > 0, sent, "{what}");
        assert!(sent || outcome == Outcome::Held(Hold::Unproven), "{what}");
    };
    check(Some(noted(known, 43)), own_chip(), true);
    check(None, own_chip(), false);
    check(Some(noted("[Pasted text #2 +41 lines]", 43)), own_chip(), false);
    // Another process of the agent in the same pane counts from the beginning.
    check(Some(noted(known, 44)), own_chip(), false);
    let chip = || Some(Chip { text: known.into(), lines: Some(41) });
    check(Some(noted(known, 43)), in_box(&["[Pasted text #1 +41 lines] y"], chip()), false);
    let other = |change: &dyn Fn(&mut Seen)| {
        let Target::Present(mut seen) = own_chip() else { unreachable!() };
        change(&mut seen);
        Target::Present(seen)
    };
    check(Some(noted(known, 43)), other(&|seen| seen.numbered_folds = false), false);
    check(Some(noted(known, 43)), other(&|seen| seen.agent_pid = None), false);
    // Without a number two folds of a size look the same.
    let bare = "[Pasted ~41 lines]";
    let bare_box = in_box(&[bare], Some(Chip { text: bare.into(), lines: Some(41) }));
    check(Some(noted(bare, 43)), bare_box.clone(), false);
    let mut pane = Script::new(&[idle(), bare_box, submitted()]);
    assert_eq!((pane.run(fresh()).code(), pane.noted), (0, None));
}

#[test]
fn a_text_that_is_only_to_be_placed_gets_no_enter() {
    for shown in [own_text(), own_chip()] {
        let mut pane = Script::new(&[idle(), shown]);
        assert_eq!(pane.run(fresh().without_enter()), Outcome::Placed);
        assert_eq!((pane.pastes, pane.enters), (1, 0));
    }
    let mut pane = Script::new(&[idle()]);
    assert_eq!(pane.run(fresh().without_enter()).code(), 4);
}

#[test]
fn a_prompt_hook_proves_an_unsigned_text_only_once_the_box_has_let_go_of_it() {
    let words = || Pasted::unsigned("please look at the tests".into());
    let shown = in_box(&["please look at the tests"], None);
    let mut pane = Script::new(&[idle(), shown.clone(), shown, idle()]);
    pane.proof_after_enters = Some(hook_after(1));
    let mut delivery = Delivery::new(words(), LIMITS);
    delivery.limits.screen_counts = false;
    assert_eq!(pane.run(delivery), Outcome::Received(Proof { by: ProofBy::Hook, queued: false }));
    // A look before the paste, one at the text, one that shows it still there, one that shows it gone.
    assert_eq!(pane.looked, 4);
    // While an earlier message waits in the queue, the hook may speak of that one.
    let mut queued = seen(State::Busy, Some(InputRow::Blank));
    queued.verdict.queued = true;
    let busy = Target::Present(Box::new(queued));
    let mut pane = Script::new(&[busy.clone(), in_box(&["please look at the tests"], None), busy]);
    pane.proof_after_enters = Some(hook_after(1));
    assert_eq!(pane.run(Delivery::new(words(), LIMITS)).code(), 4);
}
