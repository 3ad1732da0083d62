//! Makes a failing run smaller: shorter, with fewer faults and fewer workers, while anything fails in it.

use std::time::Duration;

use nexus_watcher::sys::clock::Clock;

use super::plan::Plan;
use super::run::{Report, run};
use super::trouble::{Fault, Trouble};

/// Most runs that are spent on it, and the longest time.
const MAX_RUNS: usize = 120;
const MAX_TIME: Duration = Duration::from_secs(60);

/// The smallest failing plan that was found, and its report.
pub(crate) fn shrink(plan: &Plan, report: Report) -> (Plan, Report) {
    let mut smallest = Smallest { plan: plan.clone(), report, runs: 0, began: uptime() };
    smallest.cut_off();
    for kind in Trouble::ALL {
        smallest.attempt(smallest.plan.without(kind));
    }
    smallest.fewer_faults();
    let mut workers = smallest.plan.workers;
    while workers > 1 {
        workers /= 2;
        if !smallest.attempt(Plan { workers, ..smallest.plan.clone() }) {
            break;
        }
    }
    smallest.fewer_faults();
    (smallest.plan, smallest.report)
}

/// The real time.
fn uptime() -> Duration {
    Clock::System.now().uptime
}

/// The smallest one so far.
struct Smallest {
    plan: Plan,
    report: Report,
    runs: usize,
    began: Duration,
}

impl Smallest {
    /// Runs a smaller plan, and keeps it if it fails too.
    fn attempt(&mut self, plan: Plan) -> bool {
        if plan == self.plan || self.runs >= MAX_RUNS || uptime().saturating_sub(self.began) > MAX_TIME {
            return false;
        }
        self.runs += 1;
        let report = run(&plan);
        let fails = report.failed.is_some();
        if fails {
            self.plan = plan;
            self.report = report;
            self.cut_off();
        }
        fails
    }

    /// Nothing after the failure counts. The length stays, since faults are planned by it; later ones are left out.
    fn cut_off(&mut self) {
        let Some((at, _)) = self.report.failed else { return };
        let before: Vec<Fault> = self.plan.faults().into_iter().filter(|fault| fault.at <= at).collect();
        self.plan = self.plan.with(&before);
    }

    /// Leaves out as many faults as possible, in ever smaller pieces.
    fn fewer_faults(&mut self) {
        let mut piece = self.plan.faults().len().div_ceil(2);
        while piece > 0 {
            let faults = self.plan.faults();
            let mut start = 0;
            while start < faults.len() {
                let out = &faults[start..(start + piece).min(faults.len())];
                let rest: Vec<Fault> = self.plan.faults().into_iter().filter(|fault| !out.contains(fault)).collect();
                self.attempt(self.plan.with(&rest));
                start += piece;
            }
            piece /= 2;
        }
    }
}
