//! Who runs in a pane: real programs on a private tmux server, under the names, wrappers and ends that other tools took
//! for something else. The screens are drawn by copies of ordinary programs under an agent's name.

mod support {
    pub(crate) mod panes;
    pub(crate) mod tmux;
}

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use nexus_watcher::agents::{ProfileFile, Profiles};
use nexus_watcher::daemon::observe;
use nexus_watcher::logic::pane::State;
use nexus_watcher::sys::processes::Machine;
use support::panes::{Scene, kill, line_of, who};
use support::tmux::{TestTmux, wait_for};

#[tokio::test]
async fn p18_an_agent_under_a_wrapper_is_alive_and_named() {
    let scene = Scene::aged(100);
    let wrapped = format!("sh -c '{}; true'; true", scene.agent("bin/claude", "idle"));
    let pane = scene.server.new_window("wrapped", &wrapped);
    let verdict = scene.expect(pane, State::Idle, "").await;
    assert_eq!(who(&verdict).0, Some("claude"));
    let named = line_of(&verdict, "agent-alive");
    assert!(named.ends_with("/bin/claude") && named != format!("pid {}", scene.server.pane_pid(pane)), "{named}");
}

#[tokio::test]
async fn p18_a_shell_left_by_an_agent_is_dead_whatever_is_typed_into_it() {
    let scene = Scene::aged(100);
    let agent = scene.agent("bin/claude", "idle");
    let pane = scene.server.new_window("left", &format!("sh -c '{agent}'; exec sh -i"));
    scene.expect(pane, State::Idle, "").await;
    kill(scene.agent_pid(pane).await);
    let verdict = scene.expect(pane, State::Absent, "tree-empty-past-grace").await;
    assert_eq!((verdict.agent, verdict.input), (None, None));
    scene.server.run(&["send-keys", "-t", &pane.to_string(), "-l", "claude --resume"]);
    scene.expect(pane, State::Absent, "tree-empty-past-grace").await;
}

#[tokio::test]
async fn a_young_shell_is_not_called_dead_and_an_old_screen_in_it_is_not_believed() {
    let scene = Scene::aged(0);
    let idle = scene.server.path("idle");
    let pane = scene.server.new_window("young", &format!("cat {}; exec sh -i", idle.display()));
    let verdict = scene.expect(pane, State::Unknown, "boot-grace").await;
    assert_eq!((verdict.agent, verdict.input), (None, None));
}

#[tokio::test]
async fn another_program_is_named_at_once_and_is_no_agent() {
    let scene = Scene::aged(0);
    let pane =
        scene.server.new_window("other", &format!("cat {}; exec sleep 1000", scene.server.path("idle").display()));
    let verdict = scene.expect(pane, State::Unknown, "live-descendant").await;
    assert_eq!(line_of(&verdict, "live-descendant"), "sleep");
}

#[tokio::test]
async fn p19_a_kept_corpse_is_dead_and_says_how_it_ended() {
    let scene = Scene::aged(100);
    scene.server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let idle = scene.server.path("idle");
    let ended = scene.server.new_window("ended", &format!("cat {}; exit 3", idle.display()));
    let killed = scene.server.new_window("killed", &format!("exec {}", scene.agent("bin/claude", "idle")));
    scene.expect(killed, State::Idle, "").await;
    kill(scene.server.pane_pid(killed));
    for (pane, how) in [(ended, "status 3"), (killed, "signal 9")] {
        wait_for(how, async || {
            // tmux 3.3a sometimes overlooks the end of a child until the next one ends.
            scene.server.run(&["run-shell", "true"]);
            let verdict = scene.look(pane).await;
            let is_dead = verdict.state == State::Absent && verdict.evidence[0].rule == "pane_dead";
            (is_dead && line_of(&verdict, "pane_dead") == how).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn p21_an_agent_killed_without_goodbye_is_dead_at_the_next_look() {
    let mut scene = Scene::aged(100);
    let agent = scene.agent("bin/claude", "busy");
    // The shell goes on, and draws nothing.
    let pane = scene.server.new_window("killed", &format!("sh -c '{agent}' 2>/dev/null; read never"));
    scene.expect(pane, State::Busy, "").await;
    let agent = scene.agent_pid(pane).await;
    kill(agent);
    wait_for("its end", async || (!Path::new(&format!("/proc/{agent}/exe")).exists()).then_some(())).await;
    scene.later = Duration::from_secs(11);
    scene.expect(pane, State::Absent, "tree-empty-past-grace").await;
}

#[tokio::test]
async fn a_zombie_is_no_life() {
    let scene = Scene::aged(100);
    let agent = scene.agent("bin/claude", "idle");
    // Whoever became the parent never asks for its children.
    let pane = scene.server.new_window("zombie", &format!("{agent} < /dev/tty & exec sleep 1000"));
    let verdict =
        wait_for("the agent", async || Some(scene.look(pane).await).filter(|seen| seen.agent.is_some())).await;
    let reason = verdict.evidence.iter().find_map(|reason| reason.line.as_deref()?.strip_prefix("pid ")).unwrap();
    kill(reason.split(' ').next().unwrap().parse().unwrap());
    let verdict = scene.expect(pane, State::Unknown, "live-descendant").await;
    assert_eq!((who(&verdict).0, line_of(&verdict, "live-descendant").as_str()), (None, "sleep"));
}

#[tokio::test]
async fn p60_an_agent_is_known_by_its_file_whatever_it_calls_itself() {
    let scene = Scene::aged(0);
    let idle = scene.server.path("idle").display().to_string();
    let plain = scene.copy("/bin/cat", "tools/claude").display().to_string();
    let versioned = scene.copy("/bin/cat", "share/claude/versions/2.1.300").display().to_string();
    let elsewhere = scene.copy("/bin/cat", "opt/2.1.301").display().to_string();
    let link = scene.server.path("claude");
    symlink(&elsewhere, &link).unwrap();
    let exe = scene.copy("/bin/cat", "win/claude.exe").display().to_string();
    for (command, version) in [
        (format!("bash -c 'exec -a 2.1.300 {plain} {idle} -'"), None),
        (format!("{versioned} {idle} -"), Some("2.1.300")),
        (format!("bash -c 'exec -a any-title {versioned} {idle} -'"), Some("2.1.300")),
        (format!("{} {idle} -", link.display()), None),
        (format!("{exe} {idle} -"), None),
    ] {
        let pane = scene.server.new_window("named", &command);
        let verdict = scene.expect(pane, State::Idle, "").await;
        assert_eq!(who(&verdict), (Some("claude"), version), "{command}");
    }
    // A program of another name that only mentions it.
    let other = scene.server.new_window("other", &format!("cat {idle} -; : {plain}"));
    assert_eq!(who(&scene.expect(other, State::Unknown, "live-descendant").await).0, None);
}

#[tokio::test]
async fn an_agent_that_was_replaced_in_place_lives_and_keeps_its_version() {
    let mut scene = Scene::aged(100);
    let package = "lib/node_modules/@anthropic-ai/claude-code";
    let describe = |version: &str| {
        let text = format!(r#"{{"name":"@anthropic-ai/claude-code","version":"{version}"}}"#);
        fs::write(scene.server.path(&format!("{package}/package.json")), text).unwrap();
    };
    let command = scene.agent(&format!("{package}/bin/claude.exe"), "idle");
    describe("2.1.310");
    let pane = scene.server.new_window("upgraded", &command);
    let verdict = scene.expect(pane, State::Idle, "").await;
    assert_eq!(who(&verdict), (Some("claude"), Some("2.1.310")));
    fs::remove_file(scene.server.path(&format!("{package}/bin/claude.exe"))).unwrap();
    scene.copy("/bin/cat", &format!("{package}/bin/claude.exe"));
    describe("2.1.320");
    scene.later = Duration::from_secs(200);
    assert_eq!(who(&scene.expect(pane, State::Idle, "").await), (Some("claude"), Some("2.1.310")));
    // To somebody who comes now, the package says nothing about what runs.
    scene.out.observer = observe::Observer::with(Rc::new(Profiles::builtin().unwrap()), Box::new(Machine::default()));
    assert_eq!(who(&scene.expect(pane, State::Idle, "").await), (Some("claude"), None));
}

#[tokio::test]
async fn a_script_is_known_behind_its_interpreter_with_the_version_of_its_package() {
    let scene = Scene::aged(0);
    let package = scene.server.path("lib/node_modules/@anthropic-ai/claude-code");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("package.json"), r#"{"name":"@anthropic-ai/claude-code","version":"2.0.70"}"#).unwrap();
    // The interpreter is a copy of `cat`, so its script is what it shows.
    fs::copy(scene.server.path("idle"), package.join("cli.js")).unwrap();
    let node = scene.copy("/bin/cat", "bin/node");
    let link = scene.server.path("bin/claude");
    symlink(package.join("cli.js"), &link).unwrap();
    for script in [package.join("cli.js"), link] {
        let pane = scene.server.new_window("script", &format!("{} {} -", node.display(), script.display()));
        let verdict = scene.expect(pane, State::Idle, "").await;
        assert_eq!(who(&verdict), (Some("claude"), Some("2.0.70")), "{}", script.display());
    }
}

#[tokio::test]
async fn an_agent_behind_another_tmux_or_another_machine_is_not_watched_and_not_dead() {
    let scene = Scene::aged(100);
    let idle = scene.server.path("idle").display().to_string();
    let inner = TestTmux::start();
    inner.new_window("agent", &format!("cat {idle} -"));
    let socket = inner.socket_path().display().to_string();
    let nested = scene.server.new_window("nested", &format!("sh -c 'TMUX= tmux -S {socket} attach -t main:agent'"));
    // Stands for the client: it draws what the other machine's agent would.
    let ssh = scene.copy("/bin/sh", "bin/ssh");
    let remote =
        scene.server.new_window("remote", &format!("{} -c 'cat {idle}; read x' me@box.example", ssh.display()));
    for (pane, place) in [(nested, "tmux"), (remote, "ssh box.example")] {
        scene.server.run(&["select-window", "-t", &pane.to_string()]);
        wait_for("the drawn box", async || {
            scene.server.run(&["capture-pane", "-p", "-t", &pane.to_string()]).contains('❯').then_some(())
        })
        .await;
        let verdict = scene.expect(pane, State::Unknown, "not-watched").await;
        assert_eq!(line_of(&verdict, "not-watched"), place);
        assert_eq!((verdict.agent, verdict.input, verdict.overlay), (None, None, None));
        assert!(!verdict.state.allows_retire());
    }
}

#[tokio::test]
async fn an_agent_that_was_suspended_lives_but_takes_no_keys() {
    let scene = Scene::aged(100);
    let agent = scene.agent("bin/claude", "idle");
    let pane = scene.server.new_window("suspended", "exec bash --norc -i");
    let keys = |keys: &[&str]| scene.server.run(&[&["send-keys", "-t", &pane.to_string()], keys].concat());
    keys(&["-l", &agent]);
    keys(&["Enter"]);
    scene.expect(pane, State::Idle, "").await;
    keys(&["C-z"]);
    let verdict = scene.expect(pane, State::Unknown, "agent-in-background").await;
    assert_eq!((who(&verdict).0, verdict.input), (Some("claude"), None));
}

#[tokio::test]
async fn p08_a_shell_below_an_idle_agent_is_its_work_until_it_ends() {
    let mut scene = Scene::aged(100);
    let agent = scene.copy("/bin/sh", "bin/claude");
    let idle = scene.server.path("idle").display().to_string();
    let job = scene.server.path("job").display().to_string();
    let script = format!("cat {idle}; sh -c \"echo \\$\\$ > {job}; while :; do :; done\" & read never");
    let pane = scene.server.new_window("job", &format!("{} -c '{script}'", agent.display()));
    wait_for("the job", async || fs::read_to_string(&job).ok().filter(|text| text.ends_with('\n'))).await;
    scene.later = Duration::from_secs(20);
    let verdict = scene.expect(pane, State::WorkingBackground, "background-shells").await;
    assert_eq!((verdict.background, verdict.background_reliable), (Some(1), Some(true)));
    assert!(verdict.background_oldest.is_some());
    let burnt = wait_for("its work to show", async || scene.look(pane).await.background_cpu.filter(|ticks| *ticks > 0));
    tokio::time::timeout(Duration::from_secs(60), burnt).await.unwrap();
    kill(fs::read_to_string(&job).unwrap().trim().parse().unwrap());
    scene.later = Duration::from_secs(40);
    let verdict = scene.expect(pane, State::Idle, "").await;
    assert_eq!((verdict.background, verdict.background_cpu), (None, None));
}

#[tokio::test]
async fn an_agent_that_its_operator_named_is_busy_while_its_text_changes_and_otherwise_unknown() {
    let own = "amends: generic\nset:\n  process: {exe_names: [my-agent]}\n";
    let file = ProfileFile { path: "/etc/own.yml".into(), text: Ok(own.to_owned()) };
    let (profiles, problems) = Profiles::with_files(&[file]).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    let mut scene = Scene::with(100, profiles);
    let pane = scene.server.new_window("own", &scene.agent("bin/my-agent", "idle"));
    let verdict = scene.expect(pane, State::Unknown, "text-still").await;
    assert_eq!((who(&verdict).0, verdict.input), (Some("generic"), None), "its idle box is not read");
    scene.server.run(&["send-keys", "-t", &pane.to_string(), "-l", "some text"]);
    let verdict = scene.expect(pane, State::Busy, "text-changes").await;
    assert_eq!((verdict.input, verdict.overlay), (None, None), "so nothing is typed into it");
    scene.later = Duration::from_secs(60);
    scene.expect(pane, State::Unknown, "text-still").await;
}
