//! Which process is an agent: by its program file, by the script that an interpreter runs, by the name it was started
//! under. What else it is called (its short name, the pane's current command) is no evidence while those can be read.

use regex::Regex;

use super::process::Process;

/// How the agent's process is recognised.
#[derive(Clone, Debug, Default)]
pub struct ProcessRule {
    /// Parts of the path of the executable.
    pub exe_contains: Vec<String>,
    /// Names of the executable file, or of the script that an interpreter runs.
    pub exe_names: Vec<String>,
    /// Parts of the path of that script.
    pub script_contains: Vec<String>,
    /// What the arguments after the program's (or the script's) name must start with; empty means anything.
    pub args_start: Vec<String>,
    /// Finds the version in the path, as the group `version`.
    pub version_path: Option<Regex>,
    /// Packages that the program comes in, by their names in the registry; they say its version.
    pub packages: Vec<String>,
}

impl ProcessRule {
    /// Whether a process with this executable and these arguments (the first is the program's name) is the agent. An
    /// executable that can't be read is an empty text: then the name that it was started under stands for it.
    pub fn is_match(&self, exe: &str, argv: &[String]) -> bool {
        // An upgrade in place leaves every running agent with a deleted executable.
        let exe = exe.strip_suffix(" (deleted)").unwrap_or(exe);
        let called = called(argv);
        let program = if exe.is_empty() { called } else { base(exe) };
        let script = script(program, argv);
        let arguments = match script {
            Some((at, _)) if is_interpreter(program) => argv.get(at + 1..),
            _ => argv.get(1..),
        };
        if !arguments.unwrap_or_default().starts_with(&self.args_start) {
            return false;
        }
        if self.exe_contains.iter().any(|part| exe.contains(part)) || self.is_name(program) {
            return true;
        }
        match script {
            Some((_, script)) => {
                self.script_contains.iter().any(|part| script.contains(part)) || self.is_name(base(script))
            }
            // A program can write its own title over its arguments, and a link may lead to a file named by its version.
            None => (is_interpreter(program) || is_version(program)) && self.is_name(called),
        }
    }

    /// Whether a process is the agent, as far as can be told. One of which neither file nor arguments can be read may be
    /// the agent if its short name says so.
    pub fn is_process(&self, process: &Process) -> bool {
        match (&process.exe, process.argv.as_deref()) {
            (None, None | Some([])) => self.args_start.is_empty() && self.is_name(&process.comm),
            (exe, argv) => self.is_match(exe.as_deref().unwrap_or_default(), argv.unwrap_or_default()),
        }
    }

    /// The agent's version by the path of its executable or script.
    pub fn version(&self, exe: &str, argv: &[String]) -> Option<String> {
        let pattern = self.version_path.as_ref()?;
        let script = script(base(exe), argv).map_or("", |(_, script)| script);
        let found = pattern.captures(exe).or_else(|| pattern.captures(script))?;
        Some(found.name("version")?.as_str().to_owned())
    }

    /// Whether nothing in it would recognise a process.
    pub fn is_empty(&self) -> bool {
        self.exe_contains.is_empty() && self.exe_names.is_empty() && self.script_contains.is_empty()
    }

    /// Whether a file name is one of the agent's.
    fn is_name(&self, name: &str) -> bool {
        self.exe_names.iter().any(|known| known == name)
    }
}

/// The script that an interpreter runs, or the module; its place among the arguments, and its name. `None` if the
/// program is no interpreter or runs none.
pub fn script<'a>(program: &str, argv: &'a [String]) -> Option<(usize, &'a str)> {
    // Options that take the next word.
    const WITH_VALUE: [&str; 11] = [
        "-r",
        "--require",
        "--import",
        "--loader",
        "--experimental-loader",
        "-C",
        "--conditions",
        "--cwd",
        "--title",
        "-X",
        "-W",
    ];
    // Options after which a program stands in the arguments themselves.
    const INLINE: [&str; 5] = ["-c", "-e", "-p", "--eval", "--print"];
    if !is_interpreter(program) {
        return None;
    }
    let mut words = argv.iter().enumerate().skip(1);
    while let Some((at, word)) = words.next() {
        match word.as_str() {
            "-m" => return words.next().map(|(at, module)| (at, module.as_str())),
            option if WITH_VALUE.contains(&option) => _ = words.next(),
            option if INLINE.contains(&option) => return None,
            "run" | "x" | "--" => {}
            "" => return None,
            option if option.starts_with('-') => {}
            script => return Some((at, script)),
        }
    }
    None
}

/// The file name of a path.
pub fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The name that a program was started under, or gave itself.
fn called(argv: &[String]) -> &str {
    let word = argv.first().and_then(|word| word.split_whitespace().next()).unwrap_or_default();
    base(word).trim_start_matches('-')
}

/// Whether a program runs scripts that are programs of their own. Shells are left out: what they run is below them.
fn is_interpreter(name: &str) -> bool {
    const NAMES: [&str; 5] = ["node", "nodejs", "bun", "deno", "tsx"];
    NAMES.contains(&name) || name.starts_with("python") || name.starts_with("pypy")
}

/// Whether a file's name is a version: `2.1.300`.
fn is_version(name: &str) -> bool {
    let mut parts = name.split('.');
    name.contains('.') && parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claude() -> ProcessRule {
        ProcessRule {
            exe_contains: vec!["/@x/claude-code/".into(), "/claude/versions/".into()],
            exe_names: vec!["claude".into(), "claude.exe".into()],
            script_contains: vec!["/claude-code/".into()],
            version_path: Some(Regex::new(r"/versions/(?P<version>[\d.]+)").unwrap()),
            ..ProcessRule::default()
        }
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    fn check(exe: &str, line: &str, expected: bool) {
        assert_eq!(claude().is_match(exe, &words(line)), expected, "{exe:?} {line:?}");
    }

    #[test]
    fn a_process_is_recognised_by_its_file() {
        check("/usr/bin/claude", "claude", true);
        check("/usr/bin/claude (deleted)", "claude", true);
        check("/opt/claude.exe", "x", true);
        check("/h/.local/share/claude/versions/2.1.220", "claude", true);
        check("/lib/node_modules/@x/claude-code/bin/claude.exe", "claude", true);
        check("/usr/bin/vim", "vim claude", false);
        check("/usr/bin/bash", "", false);
        check("/usr/bin/bash", "claude", false);
        // Pains P60: the title is the version, the file is the agent's.
        check("/opt/tools/claude", "2.1.300", true);
        // A link of the agent's name that leads to a file named by its version.
        check("/opt/tools/2.1.300", "claude --resume", true);
        check("/opt/tools/2.1.300", "/usr/local/bin/other", false);
    }

    #[test]
    fn a_script_is_recognised_behind_its_interpreter_and_its_options() {
        check("/usr/bin/node", "node /lib/claude-code/cli.js", true);
        check("/usr/bin/node", "node --max-old-space-size=4096 -r ./x.js /lib/claude-code/cli.js --resume", true);
        check("/usr/bin/node", "node /usr/local/bin/claude", true);
        check("/usr/bin/bun", "bun run /lib/claude-code/cli.js", true);
        check("/usr/bin/python3.11", "/v/bin/python -m claude", true);
        check("/usr/bin/python3.11", "/v/bin/python /h/.local/bin/claude", true);
        check("/usr/bin/node", "node server.js", false);
        check("/usr/bin/node", "node -e 1 /lib/claude-code/cli.js", false);
        check("/usr/bin/node", "npm exec @x/claude-code", false);
        // Somebody who looks at the script is not the agent.
        check("/usr/bin/less", "less /lib/claude-code/cli.js", false);
    }

    #[test]
    fn a_title_written_over_the_arguments_names_it_where_its_file_is_an_interpreter() {
        check("/usr/bin/node", "claude", true);
        assert!(claude().is_match("/usr/bin/node", &["claude".into(), String::new(), String::new()]));
        check("/usr/bin/node", "npm exec claude", false);
        check("/usr/bin/sleep", "claude", false);
    }

    #[test]
    fn what_cannot_be_read_is_judged_by_what_can() {
        let process = |exe: Option<&str>, line: Option<&str>, comm: &str| Process {
            exe: exe.map(str::to_owned),
            argv: line.map(words),
            comm: comm.to_owned(),
            ..Process::default()
        };
        for (process, expected) in [
            (process(None, Some("/usr/local/bin/claude --resume"), "x"), true),
            (process(None, Some("node /lib/claude-code/cli.js"), "node"), true),
            (process(None, Some("sudo -u other claude"), "sudo"), false),
            (process(None, None, "claude"), true),
            (process(None, Some(""), "claude"), true),
            (process(None, None, "node"), false),
            (process(Some("/usr/bin/vim"), Some(""), "claude"), false),
        ] {
            assert_eq!(claude().is_process(&process), expected, "{process:?}");
        }
    }

    #[test]
    fn the_path_says_the_version() {
        let version = claude().version("/h/.local/share/claude/versions/2.1.220", &[]);
        assert_eq!(version.as_deref(), Some("2.1.220"));
        assert_eq!(
            claude().version("/usr/bin/node", &words("node /x/versions/2.0.77/cli.js")).as_deref(),
            Some("2.0.77")
        );
        assert_eq!(claude().version("/usr/bin/less", &words("less /x/versions/2.0.77/cli.js")), None);
    }

    #[test]
    fn arguments_can_be_required() {
        let rule = ProcessRule {
            exe_names: vec!["ng".into()],
            args_start: vec!["demo".into(), "agent".into()],
            ..ProcessRule::default()
        };
        assert!(rule.is_match("/opt/ng", &words("ng demo agent --title x")));
        assert!(!rule.is_match("/opt/ng", &words("ng tasks")));
        assert!(rule.is_match("/usr/bin/node", &words("node /opt/ng demo agent")));
        assert!(!rule.is_match("/usr/bin/node", &words("node /opt/ng tasks")));
    }
}
