//! Programs that show what runs somewhere else: a session inside another multiplexer, another machine, a container. What
//! they draw is not ours to judge or to type into: the agent behind them, if there is one, can't be seen from here.
//!
//! Only the name of the program is told, and of `ssh` the host; command lines hold users, keys and passwords.

use super::process::Process;
use super::process_rule::base;

/// Clients that show another place whatever their arguments.
const CLIENTS: [&str; 17] = [
    "tmux",
    "screen",
    "zellij",
    "abduco",
    "dtach",
    "dvtm",
    "tmate",
    "mosh-client",
    "mosh",
    "et",
    "telnet",
    "autossh",
    "picocom",
    "minicom",
    "conmon",
    "session-manager-plugin",
    "distrobox",
];

/// Programs that do so with one of these words among their first arguments.
const WITH_VERB: [&str; 11] = [
    "docker",
    "podman",
    "nerdctl",
    "kubectl",
    "oc",
    "lxc",
    "incus",
    "machinectl",
    "multipass",
    "limactl",
    "flatpak-spawn",
];
/// Those words.
const VERBS: [&str; 8] = ["exec", "run", "attach", "shell", "rsh", "ssh", "debug", "--host"];

/// How many words of a command line are looked at for such a word.
const WORDS: usize = 8;

/// Most characters of a host that are told.
const HOST_CHARS: usize = 64;

/// Where the terminal of a tree of processes leads, if it leads elsewhere: the name of the program that stands in the
/// foreground, and of `ssh` the host.
pub fn elsewhere(tree: &[Process]) -> Option<String> {
    tree.iter().filter(|process| process.is_live() && process.in_front == Some(true)).find_map(leads)
}

/// Where this program leads.
fn leads(process: &Process) -> Option<String> {
    let argv = process.argv.as_deref().unwrap_or_default();
    let called = argv.first().and_then(|word| word.split([' ', ':']).next()).map_or("", base);
    // One that runs as another user can't be looked into; the name that it was started under is left.
    let name = process.exe.as_deref().map_or(called, base);
    let name = if name.is_empty() { process.comm.split(':').next().unwrap_or_default() } else { name };
    // Debian's screen is named by its version too.
    let name = if name.starts_with("screen-") { "screen" } else { name };
    match name {
        "ssh" | "slogin" => Some(match host(argv) {
            Some(host) => format!("ssh {host}"),
            None => "ssh".to_owned(),
        }),
        client if CLIENTS.contains(&client) => Some(client.to_owned()),
        engine if WITH_VERB.contains(&engine) => {
            let verb = argv.iter().skip(1).take(WORDS).find(|word| VERBS.contains(&word.as_str()))?;
            Some(format!("{engine} {verb}"))
        }
        _ => None,
    }
}

/// The host that `ssh` was told to go to, without user and port.
fn host(argv: &[String]) -> Option<String> {
    const WITH_VALUE: &str = "BbcDEeFIiJLlmOoPpQRSWw";
    let mut words = argv.iter().skip(1);
    while let Some(word) = words.next() {
        let Some(options) = word.strip_prefix('-') else {
            let place = word.strip_prefix("ssh://").unwrap_or(word);
            let place = place.rsplit('@').next().unwrap_or(place);
            let host = place.split(['/', ':']).next().unwrap_or(place);
            let is_host = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '.' | '-' | '_');
            return (!host.is_empty() && host.len() <= HOST_CHARS && host.chars().all(is_host))
                .then(|| host.to_owned());
        };
        // A value stands in the same word, or in the next if its letter is the last.
        if options.chars().position(|letter| WITH_VALUE.contains(letter)) == Some(options.len().saturating_sub(1)) {
            words.next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(exe: Option<&str>, line: &str, comm: &str) -> Process {
        Process {
            exe: exe.map(str::to_owned),
            argv: Some(line.split(' ').map(str::to_owned).collect()),
            comm: comm.to_owned(),
            state: 'S',
            in_front: Some(true),
            ..Process::default()
        }
    }

    fn check(exe: &str, line: &str, expected: Option<&str>) {
        let shell = Process { in_front: Some(false), ..process(Some("/usr/bin/bash"), "-bash", "bash") };
        let tree = [shell, process(Some(exe), line, "x")];
        assert_eq!(elsewhere(&tree).as_deref(), expected, "{exe} {line}");
    }

    #[test]
    fn a_client_in_the_foreground_leads_elsewhere() {
        check("/usr/bin/tmux", "tmux attach", Some("tmux"));
        check("/usr/bin/screen-4.9.0", "screen -r", Some("screen"));
        check("/usr/bin/mosh-client", "mosh-client -# secret.example | 10.0.0.1 60001", Some("mosh-client"));
        check("/usr/bin/docker", "docker --context x exec -it box bash", Some("docker exec"));
        check("/usr/bin/docker", "docker compose exec web sh", Some("docker exec"));
        check("/usr/bin/podman", "podman run -it image claude", Some("podman run"));
        check("/usr/bin/kubectl", "kubectl -n x exec -it pod -- sh", Some("kubectl exec"));
        check("/usr/bin/docker", "docker build .", None);
        check("/usr/bin/vim", "vim tmux", None);
        let other_user = [process(None, "screen -r", "screen")];
        assert_eq!(elsewhere(&other_user).as_deref(), Some("screen"));
        let unreadable = [Process { argv: None, ..process(None, "", "tmux: client") }];
        assert_eq!(elsewhere(&unreadable).as_deref(), Some("tmux"));
    }

    #[test]
    fn of_ssh_the_host_is_told_and_nothing_else() {
        check("/usr/bin/ssh", "ssh build-7.example", Some("ssh build-7.example"));
        check("/usr/bin/ssh", "ssh -tt -p 2222 -i /h/key -oProxyCommand=x me@box claude", Some("ssh box"));
        check("/usr/bin/ssh", "ssh -o ProxyCommand=x -l me -4A box", Some("ssh box"));
        check("/usr/bin/ssh", "ssh ssh://me:pass@box:22/x", Some("ssh box"));
        check("/usr/bin/ssh", "ssh me:pass", Some("ssh me"));
        check("/usr/bin/ssh", "ssh b\u{1b}[2Jx", Some("ssh"));
        check("/usr/bin/ssh", "ssh", Some("ssh"));
    }

    #[test]
    fn a_tunnel_in_the_background_does_not_own_the_terminal() {
        for in_front in [Some(false), None] {
            let tunnel = Process { in_front, ..process(Some("/usr/bin/ssh"), "ssh -N box", "ssh") };
            assert_eq!(elsewhere(&[tunnel]), None);
        }
        let ended = Process { state: 'Z', ..process(Some("/usr/bin/ssh"), "ssh box", "ssh") };
        assert_eq!(elsewhere(&[ended]), None);
    }
}
