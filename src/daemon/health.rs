//! Watches how the watcher itself fares, and reports it to the board: a clock that jumps, a report that waits, hooks
//! that say nothing. What a part of the loop knows at once (tmux, the target, the state directory) it reports itself.

use std::time::Duration;

use super::board::Board;
use super::courier::{Courier, Trouble};
use super::outside::Outside;
use crate::logic::action::Emit;
use crate::logic::degraded::Mode;
use crate::logic::delivery::{Proof, ProofBy};
use crate::logic::hook::Whose;
use crate::logic::ids::WindowName;
use crate::logic::inbox::stems;
use crate::logic::time::{Now, Timestamp, age_text};
use crate::sys::hook_files;

/// From which difference to the monotonic clock on the wall clock counts as set. Time synchronisation slews by less.
const STEP: Duration = Duration::from_secs(30);

/// How long after a proven report a hook of the agent is waited for. It runs when the agent takes up the prompt.
const HOOK_WITHIN: Duration = Duration::from_secs(120);

/// What is remembered between two ticks.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Wall clock and monotonic clock at the last tick.
    clocks: Option<(Timestamp, Duration)>,
    /// A report that arrived without its hook's receipt: its nonce, when it was composed and when it was proven.
    unheard: Option<(String, Timestamp, Timestamp)>,
}

impl Health {
    /// One look, each tick.
    pub(super) fn look<T>(&mut self, out: &Outside<T>, courier: &Courier, now: &Now) {
        self.look_at_clock(&out.board, now);
        match courier.trouble() {
            Trouble::CannotTell => {}
            Trouble::None => {
                for mode in [Mode::DeliveryHeld, Mode::DeliveryOpen, Mode::UnprovenText] {
                    out.board.report(now, mode, None);
                }
            }
            Trouble::Stands(stands, detail) => {
                for mode in [Mode::DeliveryHeld, Mode::DeliveryOpen, Mode::UnprovenText] {
                    out.board.report(now, mode, (mode == stands).then_some(detail.as_str()));
                }
            }
        }
        self.look_at_hooks(out, now);
    }

    /// Takes in that a report was proven to have arrived.
    pub(super) fn delivered<T>(&mut self, out: &Outside<T>, emit: &Emit, proof: Proof, now: &Now) {
        if proof.by == ProofBy::Hook {
            self.unheard = None;
            out.board.report(now, Mode::HooksSilent, None);
        } else if !proof.queued {
            self.unheard = Some((emit.signature.nonce.clone(), emit.at, now.at));
        }
    }

    /// The two clocks go apart when one is set; a machine that slept stands still by the monotonic one.
    fn look_at_clock(&mut self, board: &Board, now: &Now) {
        let before = self.clocks.replace((now.at, now.uptime));
        let Some((at, uptime)) = before else { return };
        let passed = now.uptime.saturating_sub(uptime);
        let expected = at.after(passed);
        let (by, way) = if now.at >= expected {
            (now.at.since(expected), "ahead (or the machine slept)")
        } else {
            (expected.since(now.at), "back")
        };
        if by >= STEP {
            board.report(now, Mode::ClockStepped, None);
            board.report(now, Mode::ClockStepped, Some(&format!("the clock was set {way} by {}", age_text(by))));
        }
    }

    /// A report that the agent took, but of which none of its hooks has told.
    fn look_at_hooks<T>(&mut self, out: &Outside<T>, now: &Now) {
        let Some((nonce, composed, proven)) = &self.unheard else { return };
        if now.at.since(*proven) < HOOK_WITHIN {
            return;
        }
        let target = WindowName(out.settings.get().target_window.clone());
        let heartbeat = hook_files::read_heartbeat(&out.state, &target, Whose::default()).ok().flatten();
        let spoke = heartbeat.map(|found| Timestamp::from_secs(found.heartbeat.last_activity));
        let are_set_up =
            || stems(&target).iter().any(|stem| out.state.at(format!("hook-settings/{stem}.json")).exists());
        let detail = silence(*composed, spoke, are_set_up, now)
            .map(|silence| format!("the agent in {target} took report {nonce}, but its hooks {silence}"));
        out.board.report(now, Mode::HooksSilent, detail.as_deref());
        self.unheard = None;
    }
}

/// What is odd about hooks that have not told of a report which was composed then; `None` if nothing is. `spoke` is when
/// they last told anything.
fn silence(
    composed: Timestamp,
    spoke: Option<Timestamp>,
    are_set_up: impl FnOnce() -> bool,
    now: &Now,
) -> Option<String> {
    match spoke {
        // Times of hooks are whole seconds.
        Some(spoke) if spoke.secs() >= composed.secs() => None,
        Some(spoke) => Some(format!("last spoke at {}", spoke.iso(now.offset))),
        // Where nobody has set up hooks, none are missed.
        None => are_set_up().then(|| "never spoke".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wall_s: i64, uptime_s: u64) -> Now {
        Now { uptime: Duration::from_secs(uptime_s), ..Now::fixed(Timestamp::from_secs(wall_s)) }
    }

    /// What is said after the clocks showed this, in turn.
    fn check(name: &str, clocks: &[(i64, u64)], expected: Option<&str>) {
        let (mut health, board) = (Health::default(), Board::default());
        for (wall, uptime) in clocks {
            health.look_at_clock(&board, &at(*wall, *uptime));
        }
        let faults = board.faults();
        assert_eq!(faults.first().map(|fault| fault.detail.as_str()), expected, "{name}");
    }

    #[test]
    fn a_clock_that_is_set_is_told_from_one_that_goes() {
        check("it goes", &[(100, 1), (110, 11), (4000, 3901)], None);
        check("it is slewed", &[(100, 1), (125, 11)], None);
        check("back", &[(5000, 1), (1400, 1)], Some("the clock was set back by 1h00m"));
        check("ahead", &[(100, 1), (3710, 11)], Some("the clock was set ahead (or the machine slept) by 1h00m"));
        check("twice", &[(100, 1), (3700, 1), (3600, 1)], Some("the clock was set back by 1m"));
    }

    #[test]
    fn hooks_are_missed_where_they_were_set_up_or_have_spoken_before() {
        let secs = Timestamp::from_secs;
        let check = |spoke: Option<i64>, are_set_up: bool, expected: Option<&str>| {
            let found = silence(Timestamp::from_millis(100_900), spoke.map(secs), || are_set_up, &at(300, 0));
            assert_eq!(found.as_deref(), expected, "{spoke:?} {are_set_up}");
        };
        check(None, false, None);
        check(None, true, Some("never spoke"));
        check(Some(99), false, Some("last spoke at 1970-01-01T00:01:39+00:00"));
        check(Some(100), true, None);
        check(Some(250), true, None);
    }
}
