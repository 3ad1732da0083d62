//! What is to be told: sections for the next emit, and what a verified delivery of them retires.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::ids::{ServerId, WindowId, WindowName};
use super::time::Timestamp;
use super::worker::roster::Roster;

/// A section of the emit. The order of the variants is the order on the page (`contracts.md` §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SectionKind {
    /// The supervisor revived a crashed watcher.
    WatcherRevived,
    /// The supervisor's heartbeat is stale.
    ArmSupervisor,
    /// The local agent install failed.
    InstallFailure,
    /// The watcher started in a window.
    HostingMigration,
    /// A component changed on disk and its restart needs the orchestrator.
    ComponentDrift,
    /// A registered service failed its check.
    ServiceHealth,
    /// A newer agent release.
    AgentUpdate,
    /// Reports were moved into their month.
    ReportsArchived,
    /// Unified diff of the local state; the only section that is cut.
    LocalChanges,
    /// Comments of the operator.
    Comments,
    /// Windows that rang.
    Bells,
    /// Decisions that wait for an answer.
    Decisions,
    /// Cards of stalled fan-outs.
    StalledFanOuts,
    /// Events of the fleet watchdog.
    FleetWatch,
    /// The request inbox.
    Requests,
    /// Workers whose idle class changed.
    IdleWorkers,
    /// The periodic full state.
    WorkspaceSnapshot,
    /// The footer about the dashboard.
    Dashboard,
    /// The footer about an external status page; stands instead of the dashboard.
    StatusSurface,
}

/// What a verified delivery of a section retires. Plain data, so that it survives a crash in the delivery journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Commit {
    /// Replace a file of the state directory (path relative to it) with this text.
    WriteState {
        /// Relative path.
        path: String,
        /// Whole new text.
        text: String,
    },
    /// Delete a file of the state directory, if it is there.
    RemoveState {
        /// Relative path.
        path: String,
    },
    /// Add rows to a table that does not have them. What else stands in it may have changed since the rows were told.
    AddRows {
        /// Relative path of the table.
        path: String,
        /// Whole lines, without line ends.
        rows: Vec<String>,
    },
    /// Set the re-emit stamp of one row of a table: lines `key columns..\t<epoch>`, newest wins.
    StampRow {
        /// Relative path of the table.
        path: String,
        /// The key columns.
        key: Vec<String>,
        /// The stamp, seconds.
        at_s: i64,
    },
    /// Set a file's time to that of the delivery; nothing if it is not there. For files whose time is what readers count
    /// from.
    StampFile {
        /// Relative path.
        path: String,
    },
    /// Clear the bell flag of these windows without creating a session.
    ClearBells {
        /// The server that they rang on; on any other these ids are other windows.
        server: ServerId,
        /// The windows that rang.
        windows: Vec<WindowId>,
    },
    /// Append the stable hash of a delivered emit to the dedup ring (`last-emit-stable-hash.ring`).
    RememberHash {
        /// Hex SHA-256 of the stripped body.
        hash: String,
        /// When, seconds.
        at_s: i64,
    },
}

/// One section as a producer stages it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Where it stands on the page.
    pub kind: SectionKind,
    /// Body lines without the header; from outside, so they are sanitised when composed.
    pub lines: Vec<String>,
    /// What a verified delivery retires.
    pub commits: Vec<Commit>,
    /// Whether it pages on its own. A footer or a snapshot rides along and does not.
    pub pages: bool,
    /// Windows named in it, for status and audit.
    pub windows: Vec<WindowName>,
}

/// What one producer has staged, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StagedSignal {
    /// When the producer ran.
    pub at: Timestamp,
    /// Its sections; empty means "nothing to tell".
    pub sections: Vec<Section>,
    /// One line for the log, where the producer suppressed something.
    pub note: Option<String>,
    /// The workers that it looked at, for the `workspace:` line and the full snapshot.
    pub roster: Option<Rc<Roster>>,
}
