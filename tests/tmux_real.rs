//! The door to tmux against the installed tmux, each test on a private server.

#![expect(clippy::unwrap_used, reason = "a failure is a panic")]

mod support {
    pub(crate) mod tmux;
}

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use nexus_watcher::logic::ids::{PaneId, WindowId};
use nexus_watcher::logic::snapshot::PaneFacts;
use nexus_watcher::sys::tmux::{
    Act, ActOutcome, ActRefusal, Capture, CaptureRequest, GuardedAct, Key, Socket, Tmux as _, TmuxClient, TmuxError,
    TmuxEvent,
};
use support::tmux::{TestTmux, wait_for};

const CONTROL: &str = "control";
const START: &str = "\u{1b}[200~";
const END: &str = "\u{1b}[201~";

fn client(server: &TestTmux) -> TmuxClient {
    TmuxClient::new(server.socket(), None)
}

/// Both ways of reading, with their modes.
fn both_ways(server: &TestTmux) -> [(TmuxClient, &'static str); 2] {
    [(client(server), CONTROL), (client(server).without_control(), "one-shot: control mode is switched off")]
}

fn whole(pane: PaneId) -> CaptureRequest {
    CaptureRequest { pane, rows: None, styled: false }
}

/// Names of the clients that are attached.
fn clients(server: &TestTmux) -> Vec<String> {
    server.run(&["list-clients", "-F", "#{client_name}"]).lines().map(str::to_owned).collect()
}

async fn guarded(server: &TestTmux, pane: PaneId, act: Act) -> GuardedAct {
    let view = client(server).view().await.unwrap();
    let pid = server.pane_pid(pane);
    GuardedAct {
        server: view.server(0).unwrap().clone(),
        pane,
        pid,
        require: vec![],
        rows: vec![],
        refuse: vec![],
        no_shell: false,
        act,
    }
}

fn paste(text: &str) -> Act {
    Act::Paste(text.to_owned())
}

fn enter() -> Act {
    Act::Press(vec![Key::Enter])
}

/// Waits until the receiver has got this many bytes, then gives them all.
async fn received(file: &Path, bytes: usize) -> String {
    wait_for("the pasted text", async || {
        let text = std::fs::read(file).ok()?;
        (text.len() >= bytes).then(|| String::from_utf8(text).unwrap())
    })
    .await
}

/// Waits until the client tells of this event.
async fn hears(events: &mut tokio::sync::broadcast::Receiver<TmuxEvent>, event: TmuxEvent) {
    let heard = async { while events.recv().await.unwrap() != event {} };
    tokio::time::timeout(Duration::from_secs(15), heard).await.unwrap_or_else(|_| panic!("never heard: {event:?}"));
}

async fn refused(server: &TestTmux, act: &GuardedAct, why: ActRefusal) {
    assert_eq!(client(server).act(act).await, Ok(ActOutcome::Refused(why)), "{act:?}");
    assert!(server.try_run(&["has-session", "-t", "=main"]).status.success(), "the server lives");
    assert_eq!(server.run(&["list-buffers"]), "", "no text stays behind");
}

#[tokio::test]
async fn reads_are_the_same_over_control_and_by_process() {
    let server = TestTmux::start();
    let script = r"printf '\033[31mred\033[0m one\ntwo\n\n  four'; exec cat";
    let pane = server.new_window("w", script);
    server.shows(pane, "four").await;
    let requests = [
        whole(pane),
        CaptureRequest { pane, rows: Some((1, 3)), styled: false },
        CaptureRequest { pane, rows: Some((0, 0)), styled: true },
        whole(PaneId::new(77)),
    ];
    let [(over_control, control_mode), (by_process, process_mode)] = both_ways(&server);
    let seen = over_control.capture(&requests).await.unwrap();
    let view = over_control.view().await.unwrap();
    assert_eq!(over_control.mode(), control_mode);
    assert_eq!(by_process.capture(&requests).await.unwrap(), seen);
    assert_eq!(by_process.view().await.unwrap(), view);
    assert_eq!(by_process.mode(), process_mode);

    let Capture::Rows(rows) = &seen[0] else { panic!("{seen:?}") };
    assert_eq!(rows.len(), 30);
    assert_eq!(rows[..4], ["red one", "two", "", "  four"]);
    assert_eq!(seen[1], Capture::Rows(vec!["two".into(), String::new(), "  four".into()]));
    assert_eq!(seen[2], Capture::Rows(vec!["\u{1b}[31mred\u{1b}[39m one".into()]));
    assert_eq!(seen[3], Capture::Gone);
}

#[tokio::test]
async fn many_panes_are_read_in_order_with_bounded_replies() {
    let server = TestTmux::start();
    let mut panes = Vec::new();
    for number in 0..12 {
        let pane = server.new_window("w", &format!("printf 'pane {number}.'; exec cat"));
        server.shows(pane, "pane").await;
        panes.push(pane);
    }
    // More than go into one process, more than are ever outstanding.
    let requests: Vec<_> = panes.iter().cycle().take(120).map(|&pane| whole(pane)).collect();
    for (client, mode) in both_ways(&server) {
        let captures = client.capture(&requests).await.unwrap();
        assert_eq!(client.mode(), mode);
        for (number, capture) in captures.iter().enumerate() {
            let Capture::Rows(rows) = capture else { panic!("{capture:?}") };
            assert_eq!(rows[0], format!("pane {}.", number % 12));
        }
    }
}

/// Names and titles that would break a parser of lines or separators.
const HOSTILE: [&str; 9] =
    ["tab\there", "日本 😀 é", "%1 @2 $3", "##{pid} 100%H", "a:b.c", "it's \"q\"", "%end 1 1 1", "two  spaces ", "-x;"];

#[tokio::test]
async fn hostile_names_and_titles_arrive_intact() {
    let server = TestTmux::start();
    let mut expected = BTreeMap::new();
    for text in HOSTILE.iter().chain(&["line\nfeed"]) {
        let pane = server.new_window("x", "exec cat");
        server.run(&["rename-window", "-t", &pane.to_string(), "--", text]);
        // A trailing `;` would end the command; titles come from programs, so this only has to be odd.
        server.try_run(&["select-pane", "-t", &pane.to_string(), "-T", text.trim_end_matches(';')]);
        let name = server.format(pane, "#{window_name}");
        let title = server.format(pane, "#{pane_title}");
        expected.insert(pane, (name, title));
    }
    for (client, mode) in both_ways(&server) {
        let view = client.view().await.unwrap();
        assert_eq!(client.mode(), mode);
        let seen: BTreeMap<_, _> = view
            .panes
            .into_iter()
            .filter(|facts| expected.contains_key(&facts.pane))
            .map(|facts| (facts.pane, (facts.window_name.0, facts.title)))
            .collect();
        assert_eq!(seen, expected);
        assert!(seen.values().any(|(name, title)| name == "日本 😀 é" && title == name), "{seen:?}");
    }
}

#[tokio::test]
async fn the_view_tells_what_tmux_knows_of_a_pane() {
    let server = TestTmux::start();
    server.run(&["set-option", "-g", "base-index", "1"]);
    server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let plain = server.new_window("same", "exec cat");
    let dead = server.new_window("same", "exit 7");
    let second = PaneId::parse(&server.run(&[
        "split-window",
        "-d",
        "-P",
        "-F",
        "#{pane_id}",
        "-t",
        &plain.to_string(),
        "exec cat",
    ]))
    .unwrap();
    server.run(&["copy-mode", "-t", &second.to_string()]);
    server.run(&["new-session", "-d", "-s", "second", "-t", "main"]);
    let client = client(&server);
    let (view, facts) = wait_for("the dead pane", async || {
        let view = client.view().await.unwrap();
        let facts: BTreeMap<PaneId, PaneFacts> = view.panes.iter().map(|facts| (facts.pane, facts.clone())).collect();
        facts[&dead].dead.is_some().then_some((view, facts))
    })
    .await;
    assert_eq!(view.panes.len(), 4, "a linked window's panes are listed once");
    assert_eq!(view.server(0).unwrap().pid, server.server_pid());
    assert_eq!(Path::new(&view.server(0).unwrap().socket), server.socket_path());
    assert_eq!(facts[&dead].dead.unwrap().status, Some(7));
    assert_eq!(facts[&plain].pid, Some(server.pane_pid(plain)));
    assert_eq!((facts[&plain].window, facts[&plain].in_mode), (facts[&second].window, false));
    assert!(facts[&second].in_mode && facts[&plain].pane_active && !facts[&second].pane_active);
    assert_eq!(facts[&plain].size.0, 100);
}

#[tokio::test]
async fn without_a_server_it_says_so_and_starts_none() {
    let server = TestTmux::absent();
    let client = client(&server);
    for _ in 0..2 {
        assert!(matches!(client.view().await, Err(TmuxError::NoServer { .. })));
        assert!(matches!(client.capture(&[whole(PaneId::new(0))]).await, Err(TmuxError::NoServer { .. })));
        assert!(matches!(client.clear_bells(&[WindowId::new(0)]).await, Err(TmuxError::NoServer { .. })));
    }
    assert_eq!(client.mode(), "one-shot: no tmux server");
    assert!(!server.socket_path().exists());
    drop(std::os::unix::net::UnixListener::bind(server.socket_path()).unwrap());
    let stale = client.view().await.unwrap_err();
    assert!(stale.to_string().contains("nothing listens there"), "{stale}");
}

#[tokio::test]
async fn a_server_that_ends_is_noticed_and_its_successor_is_another() {
    let server = TestTmux::start();
    let client = client(&server);
    let first = client.view().await.unwrap().server(0).unwrap().clone();
    server.stop_server().await;
    assert!(matches!(client.view().await, Err(TmuxError::NoServer { .. })));
    server.start_server();
    let second = client.view().await.unwrap().server(0).unwrap().clone();
    assert_ne!(first, second);
}

#[tokio::test]
async fn watching_changes_nothing_and_leaves_nothing() {
    let server = TestTmux::start();
    let look = || {
        let format = "#{session_id} #{window_id} #{window_width}x#{window_height} #{window_active} #{window_last_flag}";
        let environment = server.run(&["show-environment", "-t", "main"]);
        server.run(&["list-windows", "-a", "-F", format]) + &environment + &server.run(&["show-options", "-g"])
    };
    server.run(&["set-environment", "-t", "main", "DISPLAY", ":77"]);
    let before = look();
    let client = client(&server);
    client.view().await.unwrap();
    assert_eq!((client.mode(), clients(&server).len()), (CONTROL, 1));
    assert_eq!(look(), before);
    drop(client);
    wait_for("the control client to leave", async || clients(&server).is_empty().then_some(())).await;
    assert_eq!(look(), before);
}

#[tokio::test]
async fn when_the_control_client_is_lost_reads_go_on_and_it_returns() {
    let server = TestTmux::start();
    let client = client(&server);
    let mut events = client.events();
    client.view().await.unwrap();
    server.run(&["detach-client", "-t", &clients(&server)[0]]);
    hears(&mut events, TmuxEvent::Exit).await;
    assert_eq!(client.view().await.unwrap().panes.len(), 1);
    assert_eq!(client.mode(), "one-shot: the control client failed");
    wait_for("control to return", async || {
        client.view().await.unwrap();
        (client.mode() == CONTROL).then_some(())
    })
    .await;
}

#[tokio::test]
async fn when_its_session_ends_it_attaches_elsewhere() {
    let server = TestTmux::start();
    server.run(&["new-session", "-d", "-s", "other", "-n", "orchestrator", "exec cat"]);
    let client = TmuxClient::new(server.socket(), Some("orchestrator".to_owned()));
    let attached = || server.run(&["list-clients", "-F", "#{session_name}"]);
    client.view().await.unwrap();
    assert_eq!(attached(), "other", "where the preferred window is current");
    server.run(&["kill-session", "-t", "=other"]);
    wait_for("another session", async || {
        client.view().await.unwrap();
        (client.mode() == CONTROL && attached() == "main").then_some(())
    })
    .await;
}

#[tokio::test]
async fn it_attaches_to_no_session_that_would_end_or_lose_a_bell_by_it() {
    let server = TestTmux::start();
    server.run(&["respawn-pane", "-k", "-t", "%0", "printf '\\a'; exec cat"]);
    let client = client(&server);
    wait_for("the current window's bell", async || {
        let rings = server.format(PaneId::new(0), "#{window_bell_flag}") == "1";
        rings.then_some(())
    })
    .await;
    assert!(client.view().await.unwrap().panes[0].bell);
    assert_eq!(client.mode(), "one-shot: attaching to any session would do harm");
    assert!(client.view().await.unwrap().panes[0].bell, "looking takes no bell away");
    client.clear_bells(&[WindowId::new(0)]).await.unwrap();
    wait_for("control, now that nothing rings", async || {
        client.view().await.unwrap();
        (client.mode() == CONTROL).then_some(())
    })
    .await;
}

#[tokio::test]
async fn calls_that_overlap_do_not_mix_their_answers() {
    let server = TestTmux::start();
    let pane = server.new_window("w", "printf shown; exec cat");
    server.shows(pane, "shown").await;
    let client = client(&server);
    let requests = [whole(pane)];
    for _ in 0..5 {
        let (view, captures) = tokio::join!(client.view(), client.capture(&requests));
        assert_eq!(view.unwrap().panes.len(), 2);
        let Capture::Rows(rows) = captures.unwrap().remove(0) else { panic!("gone") };
        assert_eq!(rows[0], "shown");
        // One that is given up halfway leaves nothing behind for the next.
        let given_up = tokio::time::timeout(Duration::from_micros(50), client.view()).await;
        drop(given_up);
    }
}

#[tokio::test]
async fn a_server_that_hangs_costs_no_more_than_the_deadline() {
    let server = TestTmux::start();
    let client = client(&server).with_deadline(Duration::from_millis(600));
    client.view().await.unwrap();
    let act = guarded(&server, PaneId::new(0), enter()).await;
    let pid = server.server_pid();
    TestTmux::signal(pid, "-STOP");
    let start = tokio::time::Instant::now();
    let view = client.view().await;
    let acted = client.act(&act).await;
    let took = start.elapsed();
    TestTmux::signal(pid, "-CONT");
    assert!(matches!(view, Err(TmuxError::Timeout { .. })), "{view:?}");
    assert!(matches!(acted, Err(TmuxError::Timeout { .. })), "{acted:?}");
    assert!(took < Duration::from_millis(2500), "{took:?}");
    wait_for("answers again", async || client.view().await.ok()).await;
}

#[tokio::test]
async fn the_server_s_news_arrive_without_asking() {
    let server = TestTmux::start();
    let client = client(&server);
    let mut events = client.events();
    client.view().await.unwrap();
    let pane = server.new_window("w", "exec cat");
    hears(&mut events, TmuxEvent::WindowAdded).await;
    server.run(&["rename-window", "-t", &pane.to_string(), "v"]);
    hears(&mut events, TmuxEvent::WindowRenamed).await;
    server.run(&["copy-mode", "-t", &pane.to_string()]);
    hears(&mut events, TmuxEvent::PaneMode).await;
    server.run(&["kill-pane", "-t", &pane.to_string()]);
    hears(&mut events, TmuxEvent::WindowClosed).await;
}

#[tokio::test]
async fn a_hook_that_prints_and_a_pane_that_imitates_tmux_are_not_believed() {
    let server = TestTmux::start();
    let script =
        "for n in $(seq 1 20); do echo \"%end $n $n 1\"; echo \"%begin $n $n 1\"; echo '%exit'; done; exec cat";
    let pane = server.new_window("liar", script);
    server.shows(pane, "%exit").await;
    let client = client(&server);
    let Capture::Rows(rows) = client.capture(&[whole(pane)]).await.unwrap().remove(0) else { panic!("gone") };
    assert_eq!(rows.join("\n").trim_end(), server.screen(pane));
    assert_eq!(client.mode(), CONTROL);
    server.run(&["set-hook", "-g", "after-list-panes", "display-message -p intruder"]);
    for _ in 0..2 {
        assert_eq!(client.view().await.unwrap().panes.len(), 2);
        assert_eq!(client.mode(), CONTROL, "what a hook prints is told apart by its block");
    }
    let by_process = client.without_control().view().await;
    assert!(matches!(by_process, Err(TmuxError::Malformed { .. })), "a row that is none is not guessed at");
}

/// P28, P31: one frame, byte by byte what was asked for, and Enter a key of its own.
#[tokio::test]
async fn pasted_text_arrives_framed_and_unchanged() {
    let server = TestTmux::start();
    let long = "0123456789abcde\n".repeat(4096);
    for (number, text) in [
        "ends;",
        "-x leads",
        "it's \"q\" $HOME `id` \\",
        "#{pid} #[fg=red] %H",
        "日本 😀\tand tab",
        "two\nlines\n\n",
        &long,
    ]
    .into_iter()
    .enumerate()
    {
        let (pane, file) = server.receiver(&number.to_string()).await;
        let mut act = guarded(&server, pane, paste(text)).await;
        assert_eq!(client(&server).act(&act).await, Ok(ActOutcome::Done), "{text:.40}");
        // A terminal sends the line ends of a paste as carriage returns, and so does tmux.
        let expected = format!("{START}{}{END}", text.trim_end_matches('\n').replace('\n', "\r"));
        assert_eq!(received(&file, expected.len()).await, expected, "{text:.40}");
        act.act = enter();
        assert_eq!(client(&server).act(&act).await, Ok(ActOutcome::Done));
        assert_eq!(received(&file, expected.len() + 1).await, expected + "\r");
    }
    assert_eq!(server.run(&["list-buffers"]), "");
}

/// P39: eight senders to eight panes at once, fifty times; no text goes to another's pane and no buffer stays.
#[tokio::test]
async fn pastes_at_once_never_cross() {
    let server = TestTmux::start();
    let client = std::rc::Rc::new(client(&server));
    let mut receivers = Vec::new();
    for number in 0..8 {
        let (pane, file) = server.receiver(&number.to_string()).await;
        receivers.push((guarded(&server, pane, enter()).await, file));
    }
    let text = |number: usize, round: usize| format!("for {number} in round {round:02}");
    let senders = tokio::task::LocalSet::new();
    for (number, (act, _)) in receivers.iter().enumerate() {
        let (client, act) = (std::rc::Rc::clone(&client), act.clone());
        senders.spawn_local(async move {
            for round in 0..50 {
                let act = GuardedAct { act: paste(&text(number, round)), ..act.clone() };
                assert_eq!(client.act(&act).await, Ok(ActOutcome::Done));
            }
        });
    }
    senders.await;
    for (number, (_, file)) in receivers.iter().enumerate() {
        let expected: Vec<String> = (0..50).map(|round| format!("{START}{}{END}", text(number, round))).collect();
        let expected = expected.concat();
        assert_eq!(received(file, expected.len()).await, expected);
    }
    assert_eq!(server.run(&["list-buffers"]), "");
}

/// P40: nothing that could end the frame is sent.
#[tokio::test]
async fn control_bytes_are_never_sent() {
    let server = TestTmux::start();
    let (pane, file) = server.receiver("r").await;
    for text in ["a\u{1b}[201~\rb", "a\rb", "\n"] {
        let act = guarded(&server, pane, paste(text)).await;
        assert!(matches!(client(&server).act(&act).await, Err(TmuxError::Malformed { .. })));
    }
    let act = guarded(&server, pane, paste("last")).await;
    client(&server).act(&act).await.unwrap();
    assert_eq!(received(&file, 16).await, format!("{START}last{END}"));
}

#[tokio::test]
async fn each_check_refuses_by_itself() {
    let server = TestTmux::start();
    server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let (pane, file) = server.receiver("r").await;
    let target = pane.to_string();
    let dead = server.new_window("dead", "exit 3");
    wait_for("the pane to die", async || (server.format(dead, "#{pane_dead}") == "1").then_some(())).await;
    // For a missing pane tmux answers from what an attached client looks at, so one is attached in the second round.
    let watching = client(&server);
    for act in [paste("x"), enter(), paste("x"), enter()] {
        if act == enter() {
            watching.view().await.unwrap();
        }
        let good = guarded(&server, pane, act.clone()).await;
        refused(&server, &GuardedAct { pane: PaneId::new(99), ..good.clone() }, ActRefusal::Gone).await;
        refused(&server, &guarded(&server, dead, act.clone()).await, ActRefusal::Dead).await;
        refused(&server, &GuardedAct { pid: good.pid + 1, ..good.clone() }, ActRefusal::OtherProcess).await;
        let mut other = good.clone();
        other.server.start_s -= 1;
        refused(&server, &other, ActRefusal::OtherServer).await;
        server.run(&["copy-mode", "-t", &target]);
        refused(&server, &good, ActRefusal::InMode).await;
        server.run(&["copy-mode", "-q", "-t", &target]);
        server.run(&["set-option", "-w", "-t", &target, "synchronize-panes", "on"]);
        refused(&server, &good, ActRefusal::Synchronized).await;
        server.run(&["set-option", "-w", "-t", &target, "synchronize-panes", "off"]);
    }
    let good = guarded(&server, pane, paste("ok")).await;
    assert_eq!(client(&server).act(&good).await, Ok(ActOutcome::Done));
    assert_eq!(received(&file, 14).await, format!("{START}ok{END}"), "nothing of the refused acts arrived");
}

#[tokio::test]
async fn a_restarted_server_with_the_same_ids_is_refused() {
    let server = TestTmux::start();
    let mut act = guarded(&server, PaneId::new(0), enter()).await;
    server.stop_server().await;
    server.start_server();
    act.pid = server.pane_pid(PaneId::new(0));
    refused(&server, &act, ActRefusal::OtherServer).await;
}

/// P50: the check that the pane lives and the paste are one command list.
#[tokio::test]
async fn a_pane_that_dies_at_any_moment_never_takes_the_server_with_it() {
    let server = TestTmux::start();
    server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let pid = server.server_pid();
    let client = client(&server);
    let view = client.view().await.unwrap();
    let mut outcomes = Vec::new();
    for round in 0..200 {
        // The program ends between nought and twenty milliseconds after its window opened.
        let pane = server.new_window("r", &format!("sleep 0.0{:02}", round % 20));
        let (server_id, pid) = (view.server(0).unwrap().clone(), server.pane_pid(pane));
        let act = GuardedAct {
            server: server_id,
            pane,
            pid,
            require: vec![],
            rows: vec![],
            refuse: vec![],
            no_shell: false,
            act: paste("x"),
        };
        outcomes.push(client.act(&act).await.unwrap());
        outcomes.push(client.act(&act).await.unwrap());
        server.run(&["kill-pane", "-t", &pane.to_string()]);
    }
    assert_eq!(server.server_pid(), pid);
    let dead = outcomes.iter().filter(|outcome| **outcome == ActOutcome::Refused(ActRefusal::Dead)).count();
    assert!(dead > 0, "no round met a dead pane: {outcomes:?}");
}

#[tokio::test]
async fn keys_arrive_as_plain_bytes_whatever_the_program_and_the_server_make_of_keys() {
    // Nothing asked for; keys with modifiers told apart; every key told apart; the protocol of kitty.
    for asked in ["", "\\033[>4;1m", "\\033[>4;2m", "\\033[>1u"] {
        for extended in ["off", "on", "always"] {
            let server = TestTmux::start();
            server.run(&["set-option", "-s", "extended-keys", extended]);
            // The format in which they are told is an option from 3.5 on.
            let _older = server.try_run(&["set-option", "-s", "extended-keys-format", "csi-u"]);
            server.run(&["set-option", "-s", "backspace", "C-h"]);
            let file = server.path("keys");
            let script = format!("stty raw -echo; printf '{asked}ready'; exec cat > {}", file.display());
            let pane = server.new_window("w", &script);
            server.shows(pane, "ready").await;
            let keys = vec![Key::LetterI, Key::BSpace, Key::Enter];
            let act = guarded(&server, pane, Act::Press(keys)).await;
            assert_eq!(client(&server).act(&act).await, Ok(ActOutcome::Done));
            assert_eq!(received(&file, 3).await, "i\u{7f}\r", "{extended} {asked}");
        }
    }
}

#[tokio::test]
async fn a_row_counts_only_whole_and_literally() {
    let server = TestTmux::start();
    let rows =
        ["❯\u{a0}", "❯\u{a0}[Pasted text #1 +4 lines]", "a,b #{pid} {x} (a*b?c[d])|^$ 100% C:\\x \"q\" 日本 end"];
    let file = server.path("shown");
    std::fs::write(&file, rows.join("\n")).unwrap();
    let pane = server.new_window("w", &format!("stty -echo; cat {}; exec cat > /dev/null", file.display()));
    server.shows(pane, "end").await;
    let client = client(&server);
    let base = guarded(&server, pane, Act::Press(vec![Key::LetterI])).await;
    for row in rows {
        let act = GuardedAct { rows: vec![row.to_owned()], ..base.clone() };
        assert_eq!(client.act(&act).await.unwrap(), ActOutcome::Done, "{row}");
        for other in [format!("{row}x"), format!("x{row}"), format!("{row} y")] {
            refused(&server, &GuardedAct { rows: vec![other], ..base.clone() }, ActRefusal::ScreenChanged).await;
        }
    }
    for part in ["[Pasted text #1 +4 lines]", "❯", ".*", "end"] {
        refused(&server, &GuardedAct { rows: vec![part.to_owned()], ..base.clone() }, ActRefusal::ScreenChanged).await;
    }
}

#[tokio::test]
async fn the_screen_is_searched_for_literal_texts() {
    let server = TestTmux::start();
    let shown = "❯\u{a0}a,b #{pid} {x} a*b?c[d] 100% C:\\x \"q\" it's ; $HOME #[fg=red] ##, 日本 end";
    let file = server.path("shown");
    std::fs::write(&file, shown).unwrap();
    let pane = server.new_window("w", &format!("stty -echo; cat {}; exec cat > /dev/null", file.display()));
    server.shows(pane, "end").await;
    let client = client(&server);
    let base = guarded(&server, pane, Act::Press(vec![Key::LetterI])).await;
    let here = [
        shown,
        "❯\u{a0}a",
        "a,b",
        "#{pid}",
        "{x}",
        "a*b?c[d]",
        "100%",
        "C:\\x",
        "\"q\" it's",
        "; $HOME",
        "#[fg=red]",
        "##,",
        "日本",
        "end  ",
        "%",
        "#",
        ",",
        "}",
    ];
    let absent = ["❯ a", "a.b", "a**b", "a?b", "c[a-z]", "END", "ab", "\\\\", "#;", "本日", "100%%", "*b*", "]["];
    for (needles, found) in [(&here[..], true), (&absent[..], false)] {
        for needle in needles {
            for (require, refuse, done) in
                [(vec![(*needle).to_owned()], vec![], found), (vec![], vec![(*needle).to_owned()], !found)]
            {
                let act = GuardedAct { require, refuse, ..base.clone() };
                let expected = if done { ActOutcome::Done } else { ActOutcome::Refused(ActRefusal::ScreenChanged) };
                assert_eq!(client.act(&act).await, Ok(expected), "{act:?}");
            }
        }
    }
    let all =
        GuardedAct { require: here.map(str::to_owned).to_vec(), refuse: absent.map(str::to_owned).to_vec(), ..base };
    assert_eq!(client.act(&all).await, Ok(ActOutcome::Done));
}

#[tokio::test]
async fn bells_are_cleared_without_moving_anything() {
    let server = TestTmux::start();
    let ring = "printf '\\a'; exec cat";
    let (one, two) = (server.new_window("one", ring), server.new_window("two", ring));
    server.run(&["new-session", "-d", "-s", "second", "-t", "main"]);
    server.run(&["new-session", "-d", "-s", "elsewhere", "exec cat"]);
    let where_all_look = || {
        server.run(&[
            "list-windows",
            "-a",
            "-F",
            "#{session_id} #{window_index} #{window_id} #{window_active} #{window_last_flag}",
        ])
    };
    let client = client(&server);
    let ringing = async || -> Vec<PaneId> {
        client.view().await.unwrap().panes.into_iter().filter(|facts| facts.bell).map(|facts| facts.pane).collect()
    };
    wait_for("both bells", async || (ringing().await == [one, two]).then_some(())).await;
    let window = |pane| WindowId::parse(&server.format(pane, "#{window_id}")).unwrap();
    let before = where_all_look();

    let other_rings = client.clear_bells(&[window(one)]).await;
    assert!(matches!(other_rings, Err(TmuxError::Refused { .. })), "{other_rings:?}");
    assert_eq!(ringing().await, [one, two], "a bell that nobody reported stays");

    assert_eq!(client.clear_bells(&[window(one), window(two)]).await, Ok(()));
    assert!(ringing().await.is_empty());
    assert_eq!(client.clear_bells(&[window(one)]).await, Ok(()), "nothing rings: nothing to do");
    assert_eq!(where_all_look(), before);
}

/// Set for the run of a test in a process of its own: the socket to use.
const CHILD_SOCKET: &str = "NEXUS_TEST_CHILD_SOCKET";

/// The client of a test that runs in a process of its own; `None` in the test's first process.
#[expect(clippy::disallowed_methods, reason = "a test of the process needs one of its own")]
fn child_client() -> Option<TmuxClient> {
    let socket = std::env::var_os(CHILD_SOCKET)?;
    Some(TmuxClient::new(Socket::Path(socket.into()), None))
}

/// Runs a test once more in a process of its own, without a locale.
#[expect(clippy::disallowed_methods, reason = "a test of the process needs one of its own")]
fn run_child(test: &str, server: &TestTmux) -> std::process::Output {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("LANG", "C")
        .env(CHILD_SOCKET, server.socket_path())
        .output()
        .unwrap()
}

#[tokio::test]
async fn a_watcher_that_is_killed_leaves_no_client() {
    let pane = PaneId::new(0);
    if let Some(client) = child_client() {
        client.view().await.unwrap();
        assert_eq!(client.mode(), CONTROL);
        let requests = vec![whole(pane); 400];
        let halfway = tokio::time::timeout(Duration::from_millis(2), client.capture(&requests)).await;
        assert!(halfway.is_err(), "replies are outstanding");
        std::process::abort();
    }
    let server = TestTmux::start();
    let script = "seq -s ' ' 1 900; exec cat";
    server.run(&["respawn-pane", "-k", "-t", "%0", script]);
    server.shows(pane, "900").await;
    for _ in 0..5 {
        let output = run_child("a_watcher_that_is_killed_leaves_no_client", &server);
        assert!(output.status.code().is_none(), "{}", String::from_utf8_lossy(&output.stdout));
        wait_for("its client to leave", async || clients(&server).is_empty().then_some(())).await;
    }
}

#[tokio::test]
async fn names_survive_a_service_without_a_locale() {
    const NAME: &str = "日本 ⠋\tx";
    if let Some(client) = child_client() {
        let view = client.view().await.unwrap();
        assert_eq!(client.mode(), CONTROL);
        let names: Vec<_> = view.panes.iter().map(|facts| facts.window_name.as_str()).collect();
        assert_eq!(names, ["first", NAME]);
        assert_eq!(view.panes[1].title, "✳ é");
        assert_eq!(client.without_control().view().await.unwrap(), view);
        return;
    }
    let server = TestTmux::start();
    let pane = server.new_window(NAME, "printf '\\033]2;✳ é\\007'; exec cat");
    wait_for("the title", async || (server.format(pane, "#{pane_title}") == "✳ é").then_some(())).await;
    let output = run_child("names_survive_a_service_without_a_locale", &server);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
