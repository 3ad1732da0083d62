//! The systemd user unit of a watcher: `config/systemd/nexus-watcher.service` with its blanks filled. Nothing else in the
//! project writes a unit.

use std::time::Duration;

use super::verdict::wedge_cutoff;

/// The unit with blanks.
const TEMPLATE: &str = include_str!("../../../config/systemd/nexus-watcher.service");

/// Where programs are looked for beside the places that are known to hold ours.
const USUAL_PATH: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin"];

/// What a unit is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Root of the nexus.
    pub root: String,
    /// The program, by absolute path.
    pub program: String,
    /// Cadence of the reports.
    pub interval: Duration,
    /// Folders of the programs that the watcher calls, in the order of the search; the usual ones follow.
    pub path: Vec<String>,
    /// Further variables of its environment.
    pub environment: Vec<(&'static str, String)>,
    /// The account's runtime directory, which a unit calls `%t`.
    pub runtime_dir: Option<String>,
}

/// A value that a unit can't hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} can't stand in a unit: {value:?} holds a control character; choose another path")]
pub struct Unfit {
    /// Whose value.
    name: &'static str,
    /// The value.
    value: String,
}

impl Unit {
    /// The unit's text.
    ///
    /// Errors: a value that would break out of its line.
    pub fn render(&self) -> Result<String, Unfit> {
        let mut path: Vec<&str> = Vec::new();
        for folder in self.path.iter().map(String::as_str).chain(USUAL_PATH) {
            if folder.starts_with('/') && !path.contains(&folder) {
                path.push(folder);
            }
        }
        let mut environment = vec![self.variable("PATH", &path.join(":"))?, self.variable("NEXUS_ROOT", &self.root)?];
        for (name, value) in &self.environment {
            environment.push(self.variable(name, value)?);
        }
        let watchdog = wedge_cutoff(self.interval, Duration::ZERO).as_secs().to_string();
        let mut text = TEMPLATE.to_owned();
        for (blank, value) in [
            // A description is no list of words: nothing is quoted in it.
            ("{{root}}", fit("the root", &self.root)?.replace('%', "%%")),
            ("{{program}}", quoted(fit("the program", &self.program)?)),
            ("{{watchdog_s}}", watchdog),
            ("{{environment}}", environment.join("\n")),
        ] {
            text = text.replace(blank, &value);
        }
        Ok(text)
    }

    /// One line of environment. A path in the runtime directory is written by its specifier.
    fn variable(&self, name: &'static str, value: &str) -> Result<String, Unfit> {
        let value = fit(name, value)?;
        let in_runtime_dir = self.runtime_dir.as_ref().and_then(|dir| {
            let rest = value.strip_prefix(dir.trim_end_matches('/'))?;
            (dir.len() > 1 && rest.starts_with('/')).then_some(rest)
        });
        Ok(match in_runtime_dir {
            Some(rest) => format!("Environment=\"{name}=%t{}\"", escaped(rest)),
            None => format!("Environment=\"{name}={}\"", escaped(value)),
        })
    }
}

/// Refuses what would end a line early.
fn fit<'a>(name: &'static str, value: &'a str) -> Result<&'a str, Unfit> {
    if value.chars().any(char::is_control) {
        return Err(Unfit { name, value: value.to_owned() });
    }
    Ok(value)
}

/// A word of a command line.
fn quoted(word: &str) -> String {
    format!("\"{}\"", escaped(word))
}

/// Text between double quotes: no escape, no specifier.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%")
}

/// The socket to watch that an account's own tmux is found by, where a service would not find it: `tmux_variable` is
/// `$TMUX` of a shell inside that tmux, `tmpdir` is `$TMUX_TMPDIR`.
///
/// Shape: `None` where the default already leads there.
pub fn socket_of(tmux_variable: Option<&str>, tmpdir: Option<&str>, uid: u32) -> Option<String> {
    // "socket,pid,session": a comma may be part of the socket's path.
    let socket = tmux_variable?.rsplitn(3, ',').nth(2)?;
    let default = format!("{}/tmux-{uid}/default", tmpdir.unwrap_or("/tmp").trim_end_matches('/'));
    (socket.starts_with('/') && socket != default).then(|| socket.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> Unit {
        Unit {
            root: "/home/a/nexus".into(),
            program: "/home/a/.local/bin/nexus-watcher".into(),
            interval: Duration::from_secs(60),
            ..Unit::default()
        }
    }

    fn line<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
        text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
    }

    #[test]
    fn the_contract_of_the_unit_row_by_row() {
        let text = unit().render().unwrap();
        for (key, value) in [
            ("Type", "notify"),
            ("WatchdogSec", "900"),
            ("Restart", "on-failure"),
            ("RestartPreventExitStatus", "4"),
            ("PrivateTmp", "no"),
            ("KillMode", "process"),
            ("ExecStart", "\"/home/a/.local/bin/nexus-watcher\""),
            ("Description", "Nexus Watcher of /home/a/nexus"),
        ] {
            assert_eq!(line(&text, key), [value], "{key}");
        }
        assert!(!text.contains("{{"), "{text}");
        // Each of these would put the watcher into a namespace where the socket or the processes of tmux look different.
        for namespace in
            ["ProtectSystem", "ProtectHome", "PrivateDevices", "ProtectProc", "RootDirectory", "PrivatePIDs"]
        {
            assert!(line(&text, namespace).is_empty(), "{namespace}");
        }
    }

    #[test]
    fn the_watchdog_is_never_below_the_wedge_cutoff() {
        for (interval, expected) in [(1, "900"), (225, "900"), (300, "1200"), (86_400, "345600")] {
            let text = Unit { interval: Duration::from_secs(interval), ..unit() }.render().unwrap();
            assert_eq!(line(&text, "WatchdogSec"), [expected], "{interval}");
        }
    }

    #[test]
    fn the_environment_is_quoted_and_finds_programs_and_sockets() {
        let unit = Unit {
            path: vec!["/opt/tmux/bin".into(), "/usr/bin".into(), "relative".into()],
            environment: vec![
                ("TMUX_TMPDIR", "/run/user/1000/tmux".into()),
                ("NEXUS_STATE_DIR", "/a b/100%/\"q\"\\".into()),
                ("NEXUS_CONFIG", "/run/user/10001/x".into()),
            ],
            runtime_dir: Some("/run/user/1000".into()),
            ..unit()
        };
        assert_eq!(
            line(&unit.render().unwrap(), "Environment"),
            [
                "\"PATH=/opt/tmux/bin:/usr/bin:/usr/local/bin:/bin:/usr/local/sbin\"",
                "\"NEXUS_ROOT=/home/a/nexus\"",
                "\"TMUX_TMPDIR=%t/tmux\"",
                "\"NEXUS_STATE_DIR=/a b/100%%/\\\"q\\\"\\\\\"",
                "\"NEXUS_CONFIG=/run/user/10001/x\"",
            ]
        );
    }

    #[test]
    fn a_path_that_would_break_out_of_its_line_is_refused() {
        for unit in [
            Unit { root: "/a\nExecStart=/bin/evil".into(), ..unit() },
            Unit { program: "/a\nb".into(), ..unit() },
            Unit { environment: vec![("NEXUS_CONFIG", "/a\u{b}".into())], ..unit() },
        ] {
            assert!(unit.render().unwrap_err().to_string().contains("control character"));
        }
    }

    #[test]
    fn a_socket_that_the_service_would_not_find_is_named_row_by_row() {
        let check = |tmux: Option<&str>, tmpdir: Option<&str>, expected: Option<&str>| {
            assert_eq!(socket_of(tmux, tmpdir, 1000).as_deref(), expected, "{tmux:?} {tmpdir:?}");
        };
        check(None, None, None);
        check(Some("/tmp/tmux-1000/default,7,0"), None, None);
        check(Some("/tmp/tmux-1000/work,7,0"), None, Some("/tmp/tmux-1000/work"));
        check(Some("/run/t/tmux-1000/default,7,0"), Some("/run/t/"), None);
        check(Some("/run/t/tmux-1000/default,7,0"), None, Some("/run/t/tmux-1000/default"));
        check(Some("/tmp/a,b,7,0"), None, Some("/tmp/a,b"));
        for rubbish in ["", ",", "x,1,2", "/tmp/x"] {
            check(Some(rubbish), None, None);
        }
    }
}
