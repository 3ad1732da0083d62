//! A run as data: everything that it depends on, and the one line that repeats it.

use std::time::Duration;

use nexus_watcher::sys::env::Env;

use super::trouble::{Fault, Trouble, plan};

/// The last part of a run is without faults, so that everything can be told.
pub(crate) const QUIET_END: Duration = Duration::from_secs(30 * 60);

/// What a run depends on. Equal plans give equal runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// All chance.
    pub(crate) seed: u64,
    /// How many workers.
    pub(crate) workers: usize,
    /// How long.
    pub(crate) length: Duration,
    /// How often a worker gets something to do, on average.
    pub(crate) pace: Duration,
    /// How often something goes wrong, on average.
    pub(crate) gap: Duration,
    /// Only these faults of the seed; `None` means all.
    pub(crate) only: Option<Vec<usize>>,
}

impl Plan {
    /// A short run with much trouble.
    pub(crate) fn short(seed: u64) -> Self {
        Self {
            seed,
            workers: 3,
            length: Duration::from_secs(2 * 3600),
            pace: Duration::from_secs(12 * 60),
            gap: Duration::from_secs(110),
            only: None,
        }
    }

    /// Thirty days with fifty workers.
    pub(crate) fn long(seed: u64) -> Self {
        Self {
            seed,
            workers: 50,
            length: Duration::from_secs(30 * 86_400),
            pace: Duration::from_secs(8 * 3600),
            gap: Duration::from_secs(15 * 60),
            only: None,
        }
    }

    /// What the environment asks for, from a default.
    pub(crate) fn from_env(env: &dyn Env, default: &Self) -> Self {
        let number = |name: &str| env.non_empty(name).and_then(|text| text.parse::<u64>().ok());
        let minutes = |name: &str, default: Duration| number(name).map_or(default, |n| Duration::from_secs(n * 60));
        Self {
            seed: number("NEXUS_SIM_SEED").unwrap_or(default.seed),
            workers: number("NEXUS_SIM_WORKERS").map_or(default.workers, |n| usize::try_from(n).unwrap_or(1)),
            length: minutes("NEXUS_SIM_MINUTES", default.length),
            pace: minutes("NEXUS_SIM_PACE", default.pace),
            gap: number("NEXUS_SIM_GAP").map_or(default.gap, Duration::from_secs),
            only: env.get("NEXUS_SIM_ONLY").map(|list| list.split('.').filter_map(|n| n.parse().ok()).collect()),
        }
    }

    /// Its faults.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults = plan(self.seed, self.length, QUIET_END, self.gap);
        if let Some(only) = &self.only {
            faults.retain(|fault| only.contains(&fault.number));
        }
        faults
    }

    /// The same run without some of its faults.
    pub(crate) fn with(&self, faults: &[Fault]) -> Self {
        Self { only: Some(faults.iter().map(|fault| fault.number).collect()), ..self.clone() }
    }

    /// The same run without the faults of a kind.
    pub(crate) fn without(&self, kind: Trouble) -> Self {
        let rest: Vec<Fault> = self.faults().into_iter().filter(|fault| fault.kind != kind).collect();
        self.with(&rest)
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "NEXUS_SIM_SEED={} NEXUS_SIM_WORKERS={} NEXUS_SIM_MINUTES={} NEXUS_SIM_PACE={} NEXUS_SIM_GAP={}",
            self.seed,
            self.workers,
            self.length.as_secs() / 60,
            self.pace.as_secs() / 60,
            self.gap.as_secs()
        )?;
        if let Some(only) = &self.only {
            let numbers: Vec<String> = only.iter().map(usize::to_string).collect();
            write!(f, " NEXUS_SIM_ONLY={}", numbers.join("."))?;
        }
        write!(f, " cargo nextest run --test simulation replay")
    }
}
