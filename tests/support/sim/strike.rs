//! Carries out the faults of a plan. Each ends by itself, and leaves nothing that the next one would trip over.

use std::sync::atomic::Ordering;
use std::time::Duration;

use nexus_watcher::logic::ids::{PaneId, WindowId};

use super::agent::Dialog;
use super::dice::Dice;
use super::fleet::{Fleet, SESSION, TARGET};
use super::machine::{Lost, Machine};
use super::program::Program;
use super::trouble::{Fault, Trouble};

/// A draft that somebody types.
const DRAFT: &str = "hold on, I am looking at this";

impl Fleet {
    /// Begins a fault and arranges its end.
    pub(super) fn strike(&mut self, fault: Fault) {
        let mut dice = Dice::new(fault.seed);
        self.note(format!("fault {}: {:?} for {:?}", fault.number, fault.kind, fault.lasts));
        let lasts = fault.lasts;
        match fault.kind {
            Trouble::Hang => {
                let until = self.now().uptime + lasts;
                self.tmux.touch().weather.deaf_until = Some(until);
            }
            Trouble::Timeout => self.lose(&mut dice, lasts, [Lost::Question, Lost::Answer]),
            Trouble::Refusal => self.lose(&mut dice, lasts, [Lost::Refused, Lost::Garbled]),
            Trouble::SwallowedEnter => {
                self.tmux.touch().weather.swallow_enters = u32::try_from(dice.below(4)).unwrap_or(0) + 1;
                self.later(lasts, |fleet| fleet.tmux.touch().weather.swallow_enters = 0);
            }
            Trouble::SlowEcho => {
                self.tmux.touch().weather.echo = dice.secs(1, 8);
                self.later(lasts, |fleet| fleet.tmux.touch().weather.echo = Duration::ZERO);
            }
            Trouble::LostReceipt | Trouble::LateReceipt => {
                self.receipts = if fault.kind == Trouble::LostReceipt { Duration::MAX } else { dice.secs(1, 40) };
                if fault.kind == Trouble::LostReceipt && dice.chance(50) {
                    // Only the pane can tell.
                    self.transcripts = Duration::MAX;
                }
                self.later(lasts, |fleet| {
                    fleet.receipts = Duration::ZERO;
                    fleet.transcripts = Duration::ZERO;
                });
            }
            Trouble::NoTranscript | Trouble::LateTranscript => {
                self.transcripts = if fault.kind == Trouble::NoTranscript { Duration::MAX } else { dice.secs(1, 40) };
                self.later(lasts, |fleet| fleet.transcripts = Duration::ZERO);
            }
            Trouble::LongTurns => {
                self.longest_turn = 400;
                self.later(lasts * 4, |fleet| fleet.longest_turn = 25);
            }
            Trouble::Crash => self.end_watcher(),
            Trouble::CrashAtStep => {
                self.switches.end_in.set(Some(u32::try_from(dice.below(60)).unwrap_or(0)));
                self.later(lasts, |fleet| fleet.switches.end_in.set(None));
            }
            Trouble::DiskFull => {
                self.switches.disk_full.set(true);
                self.later(lasts, |fleet| fleet.switches.disk_full.set(false));
            }
            Trouble::FailedWrite => {
                self.switches.fail_write.set(Some(u32::try_from(dice.below(40)).unwrap_or(0)));
                self.later(lasts, |fleet| fleet.switches.fail_write.set(None));
            }
            Trouble::ClockSet => {
                let by = i64::try_from(dice.millis(1000, 3_600_000).as_millis()).unwrap_or(0);
                self.set_by.fetch_add(if dice.chance(50) { by } else { -by }, Ordering::Relaxed);
                let at = self.now().uptime;
                self.truth.clock_was_set(at);
            }
            Trouble::ServerRestart => self.restart_server(lasts),
            Trouble::Race => self.race(&mut dice, lasts),
            _ => self.strike_target(fault.kind, &mut dice, lasts),
        }
    }

    /// The watcher ends now.
    fn end_watcher(&mut self) {
        self.switches.ended.set(true);
        self.switches.end.notify_one();
    }

    /// The next answers of tmux are lost.
    fn lose(&mut self, dice: &mut Dice, lasts: Duration, kinds: [Lost; 2]) {
        let mut machine = self.tmux.touch();
        let lost: Vec<Lost> = (0..=dice.below(4)).map(|_| *dice.pick(&kinds)).collect();
        // Acts are rare among the calls, and matter most.
        if dice.chance(60) {
            machine.weather.next_acts.extend(lost);
        } else {
            machine.weather.next.extend(lost);
        }
        drop(machine);
        self.later(lasts, |fleet| {
            let weather = &mut fleet.tmux.touch().weather;
            weather.next.clear();
            weather.next_acts.clear();
        });
    }

    /// Does something after a while, unless another server runs by then: there the same ids are other windows.
    fn until(&mut self, lasts: Duration, job: impl FnOnce(&mut Self) + 'static) {
        let server = self.tmux.look().server().cloned();
        self.later(lasts, move |fleet| {
            let same = server.is_some() && fleet.tmux.look().server() == server.as_ref();
            if same {
                job(fleet);
            }
        });
    }

    fn restart_server(&mut self, lasts: Duration) {
        if self.tmux.look().server().is_none() {
            return;
        }
        self.tmux.touch().kill_server();
        self.server_is_gone();
        self.later(lasts, |fleet| {
            fleet.tmux.touch().start_server();
            fleet.open_target();
            fleet.open_workers();
        });
    }

    /// Something happens to the orchestrator's window or pane.
    fn strike_target(&mut self, kind: Trouble, dice: &mut Dice, lasts: Duration) {
        let Some((window, pane)) = self.target else { return };
        if kind == Trouble::WindowGone {
            self.tmux.touch().kill_window(window);
            self.target = None;
            self.until(lasts, |fleet| {
                if fleet.target.is_none() {
                    fleet.open_target();
                }
            });
            return;
        }
        if kind == Trouble::Twin {
            let (twin, _) = self.tmux.touch().new_window(SESSION, TARGET, Program::shell());
            self.until(lasts, move |fleet| fleet.tmux.touch().kill_window(twin));
            return;
        }
        blow(&mut self.tmux.touch(), kind, dice.chance(50), window, pane);
        let send = dice.chance(50);
        self.until(lasts, move |fleet| fleet.tidy(send));
    }

    /// Something happens right before or right after one of the watcher's next acts.
    fn race(&mut self, dice: &mut Dice, lasts: Duration) {
        let Some((window, pane)) = self.target else { return };
        let kinds = [
            Trouble::Draft,
            Trouble::PastedDraft,
            Trouble::Dialog,
            Trouble::CopyMode,
            Trouble::Synchronized,
            Trouble::Death,
            Trouble::Shell,
            Trouble::LongTurns,
        ];
        let (kind, variant) = (*dice.pick(&kinds), dice.chance(50));
        // The next act is a paste, mostly, and the second one its Enter.
        let when = *dice.pick(&["before the paste", "after the paste", "before the Enter", "after the Enter"]);
        self.note(format!("  {kind:?} {when}"));
        let mut machine = self.tmux.touch();
        let strike = move |machine: &mut Machine| match kind {
            // Somebody presses Enter just then, or empties the box.
            Trouble::LongTurns if variant => machine.enter(pane),
            Trouble::LongTurns => {
                machine.with_agent(pane, |agent, _| agent.clear());
            }
            kind => blow(machine, kind, variant, window, pane),
        };
        match when {
            "before the paste" => machine.before_act(0, strike),
            "before the Enter" => machine.before_act(1, strike),
            "after the paste" => machine.after_act(0, strike),
            _ => machine.after_act(1, strike),
        }
        drop(machine);
        let send = dice.chance(50);
        self.until(lasts, move |fleet| {
            fleet.tmux.touch().no_strikes();
            fleet.tidy(send);
        });
    }

    /// Brings the orchestrator's pane back to where it can be typed into: people finish what they were doing.
    fn tidy(&mut self, send: bool) {
        let Some((window, pane)) = self.target else { return };
        let mut machine = self.tmux.touch();
        machine.set_mode(pane, false);
        machine.set_synchronized(window, false);
        let lives = machine.with_agent(pane, |agent, now| {
            if agent.dialog().is_some() {
                agent.enter(now);
            }
            if agent.pieces().iter().any(|piece| !piece.is_ours) {
                if send {
                    agent.enter(now);
                } else {
                    agent.clear();
                }
            }
        });
        drop(machine);
        if lives.is_none() && self.tmux.look().pane(pane).is_some() {
            let turn = Duration::from_secs(20);
            if self.tmux.look().pane(pane).is_some_and(|pane| pane.dead.is_some()) {
                self.tmux.touch().respawn(pane, Program::agent(turn));
            } else {
                self.tmux.touch().become_program(pane, Program::agent(turn));
            }
            self.sit_down(pane, TARGET, true);
        }
    }
}

/// What happens to the orchestrator's pane.
fn blow(machine: &mut Machine, kind: Trouble, variant: bool, window: WindowId, pane: PaneId) {
    match kind {
        Trouble::Draft => {
            machine.with_agent(pane, |agent, _| agent.write(DRAFT, variant));
        }
        Trouble::PastedDraft => machine.paste_text(pane, &[DRAFT; 6].join("\n")),
        Trouble::Dialog => {
            let dialog = if variant { Dialog::Permission } else { Dialog::Ask };
            machine.with_agent(pane, |agent, now| agent.ask(dialog, now));
        }
        Trouble::CopyMode => machine.set_mode(pane, true),
        Trouble::Synchronized => machine.set_synchronized(window, true),
        Trouble::Death => machine.end_program(pane, 1),
        Trouble::Shell => machine.become_program(pane, Program::shell()),
        _ => {}
    }
}
