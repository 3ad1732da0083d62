//! What other tools read wrong on screens (section A of the reported pains), tried on a private tmux server: real panes
//! that show what a user reported, and the real observer. `docs/coverage.md` lists the reports.

#![expect(clippy::unwrap_used, reason = "a failure is a panic")]

mod support {
    pub(crate) mod panes;
    pub(crate) mod tmux;
}

use std::fs;
use std::time::Duration;

use nexus_watcher::logic::degraded::Mode;
use nexus_watcher::logic::ids::PaneId;
use nexus_watcher::logic::pane::{InputRow, Overlay, PaneVerdict, State};
use support::panes::{Scene, line_of};
use support::tmux::wait_for;

/// Spinner words that no release had.
const VERBS: [&str; 20] = [
    "Frobnicating",
    "Snorkeling",
    "Zigzagging",
    "Moonwalking",
    "Yodeling",
    "Quilting",
    "Kerfuffling",
    "Wobbling",
    "Dovetailing",
    "Spelunking",
    "Grokking",
    "Tinkering",
    "Herding",
    "Whittling",
    "Juggling",
    "Marinating",
    "Noodling",
    "Percolating",
    "Rummaging",
    "Éclairing",
];

/// A line that closes a turn.
const FINISHED: &str = "✻ Worked for 3m 12s";

/// The box at a width, with what stands in it and below it.
fn boxed(width: u16, input: &str, footer: &str) -> String {
    let rule = "─".repeat(width.into());
    format!("{rule}\n❯\u{a0}{input}\n{rule}\n  {footer}\n")
}

/// A screen with a box: what stands above it, and its footer.
fn with_box(above: &str, footer: &str) -> String {
    format!("{above}\n\n{}", boxed(100, "", footer))
}

/// The dialogs, as text.
const PERMISSION: &str = "Bash command\n\n  rm -rf build\n\nDo you want to proceed?\n❯ 1. Yes\n  2. Yes, and don't ask again for rm \
                          commands in /srv/demo\n  3. No\n\nEsc to cancel\n";
const QUESTION: &str = "☐ Storage\n\nWhich store should the service use?\n\n❯ 1. SQLite\n     One file, no server.\n  2. \
                        Postgres\n     A server that somebody runs.\n  3. Type something.\n  4. Chat about this\n\nEnter to \
                        select · ↑/↓ to navigate · Esc to cancel\n";
const TRUST: &str = "Quick safety check: Is this a project you created or one you trust?\n\n❯ No, exit\n  Yes, I trust this \
                     folder\n\nEnter to confirm · Esc to cancel\n";
const LIMIT: &str = "⎿ You've hit your session limit · resets 8pm (Asia/Tokyo)";

/// A shell function that draws the rows of a file from a row on, over what stands there, and waits a tenth of a second.
const DRAW: &str = "draw() { printf '\\033[%sH' $2; while IFS= read -r row; do printf '%s\\033[K\\n' \"$row\"; done < $1; read \
                    -t 0.1 -r _; }\nprintf '\\033[?25l'\n";

/// Every line of a text behind this.
fn indented(by: &str, text: &str) -> String {
    text.lines().flat_map(|line| [by, line, "\n"]).collect()
}

/// Below a line across the screen, as the program draws a dialog.
fn ruled(width: u16, text: &str) -> String {
    format!("{}\n{}", "─".repeat(width.into()), indented(" ", text))
}

/// Looks until every pane is what it should be, or the time is up; the rest is named.
async fn expect_all(scene: &Scene, expected: &[(PaneId, String, State)]) {
    assert_eq!(wrong_after_all(scene, expected).await, Vec::<String>::new());
}

/// What is still not as it should be when the time is up.
async fn wrong_after_all(scene: &Scene, expected: &[(PaneId, String, State)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let all_right = async {
        wait_for("every verdict", async || {
            let seen = scene.look_at_all().await;
            wrong = expected
                .iter()
                .filter(|(pane, _, state)| seen[pane].state != *state)
                .map(|(pane, what, state)| {
                    format!("{what}: {} instead of {state}: {:?}", seen[pane].state, seen[pane].evidence)
                })
                .collect();
            wrong.is_empty().then_some(())
        })
        .await;
    };
    let _in_time = tokio::time::timeout(Duration::from_secs(12), all_right).await;
    wrong
}

#[tokio::test]
async fn p01_any_spinner_word_is_busy_and_a_finished_line_is_not() {
    let scene = Scene::aged(100);
    let mut expected = Vec::new();
    for (number, verb) in VERBS.iter().enumerate() {
        let glyph = ["·", "✢", "✳", "✶", "✻", "✽"][number % 6];
        for tail in ["", " (12s · ↓ 340 tokens)", " (12s · ↓ 340 tokens · esc to interrupt)", " (esc to interrupt)"]
        {
            let line = format!("{glyph} {verb}…{tail}");
            let pane = scene.show(&format!("v{}", expected.len()), &with_box(&line, "? for shortcuts"));
            expected.push((pane, line, State::Busy));
        }
    }
    for line in [FINISHED, "✻ Éclaired for 12s", "✢ Frobnicated for 1h 3m 12s · done 9:32 PM"] {
        let above = format!("● All tests pass.\n\n{line}");
        let pane = scene.show(&format!("v{}", expected.len()), &with_box(&above, "? for shortcuts"));
        expected.push((pane, line.to_owned(), State::Idle));
    }
    expect_all(&scene, &expected).await;
}

#[tokio::test]
async fn p02_a_box_that_is_drawn_all_the_time_is_no_end_of_a_turn() {
    let scene = Scene::aged(100);
    let path = |name: &str| scene.server.path(name).display().to_string();
    fs::write(path("whole"), with_box("✻ Brewing… (12s · ↓ 340 tokens)", "? for shortcuts")).unwrap();
    fs::write(path("partial"), with_box(" ", "? for shortcuts")).unwrap();
    fs::write(path("box"), boxed(100, "", "? for shortcuts")).unwrap();
    // The spinner stands for two tenths of a second in four seconds, the box is drawn in each.
    let rarely = format!(
        "{DRAW}while :; do draw {whole} 1; draw {whole} 1; for n in {{1..38}}; do draw {partial} 1; done; done\n",
        whole = path("whole"),
        partial = path("partial")
    );
    // The spinner is drawn once, and then the box alone.
    let once = format!("{DRAW}draw {} 1; while :; do draw {} 3; done\n", path("whole"), path("box"));
    let (rarely, once) = (scene.play("rarely", &rarely), scene.play("once", &once));
    scene.expect(rarely, State::Busy, "").await;
    scene.expect(once, State::Busy, "").await;
    // Nothing runs, by every look of a time that would be enough for a pane in which nothing is drawn.
    wait_for("looks at a box without a spinner", async || {
        let seen = scene.look_at_all().await;
        assert_eq!((seen[&rarely].state, seen[&once].state), (State::Busy, State::Busy), "{:?}", seen[&rarely]);
        let settling = seen[&rarely].evidence.iter().find(|reason| reason.rule == "settling")?;
        let (_, lasted) = settling.line.as_deref()?.split_once(" in 2 of 2 looks, for ")?;
        (lasted.split_once(' ')?.0.parse::<f32>().ok()? > 2.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn p03_quoted_spinners_and_a_footer_that_always_names_the_key_are_no_turn() {
    let mut scene = Scene::aged(100);
    let old = "  ✻ Brewing… (7s · ↓ 340 tokens · esc to interrupt)\n✢ Stewing… (esc to interrupt · ctrl+t)\n";
    let quoted = old.repeat(15);
    let above = format!("{quoted}\n● Those were the old lines.\n\n{FINISHED}");
    let plain = scene.show("plain", &with_box(&above, "? for shortcuts"));
    scene.expect(plain, State::Idle, "").await;
    // What the agent said last may end in one, and not every release closes a turn with a line.
    let said = format!("● A line of the log:\n{}", indented("  ", old));
    let said = scene.show("said", &with_box(&said, "? for shortcuts"));
    scene.expect(said, State::Idle, "").await;
    // Releases of this year name the key in the footer while a turn runs, and sometimes nowhere else. So a footer that
    // always does needs time: nothing is drawn.
    let always = scene.show("always", &with_box(&above, "⏵⏵ auto mode on · esc to interrupt · ← for agents"));
    scene.expect(always, State::Busy, "claude-footer-interrupt").await;
    scene.later = Duration::from_secs(32);
    scene.look(always).await;
    scene.later = Duration::from_secs(34);
    scene.expect(always, State::Idle, "closed-silent").await;
}

#[tokio::test]
async fn p05_two_changes_in_one_second_are_two() {
    let mut scene = Scene::aged(100);
    fs::write(scene.server.path("b"), with_box("✻ Brewing… (12s · ↓ 340 tokens)", "? for shortcuts")).unwrap();
    // Of as many rows, and drawn over the other, so that neither the cursor nor the history tells of the change.
    fs::write(scene.server.path("i"), with_box(FINISHED, "? for shortcuts")).unwrap();
    let script = format!(
        "{DRAW}draw {busy} 1; read -t 0.15 -r _; draw {idle} 1; read -r _\n",
        busy = scene.server.path("b").display(),
        idle = scene.server.path("i").display()
    );
    let mut was_busy = 0;
    let mut panes = Vec::new();
    for round in 0..50 {
        panes.push(scene.play(&format!("round{round}"), &script));
        let seen = scene.look_at_all().await;
        was_busy += panes.iter().filter(|pane| seen[pane].state == State::Busy).count();
    }
    for pane in &panes {
        scene.server.shows(*pane, "Worked for").await;
    }
    assert!(was_busy > 0, "no pane was ever looked at while busy");
    // Two seconds, with a look each half second.
    for _ in 0..4 {
        scene.look_at_all().await;
        scene.later += Duration::from_millis(500);
    }
    let seen = scene.look_at_all().await;
    let late: Vec<&PaneVerdict> =
        panes.iter().map(|pane| &seen[pane]).filter(|verdict| verdict.state != State::Idle).collect();
    assert!(late.is_empty(), "{} of 50 still not idle after 2 s: {:?}", late.len(), late.first());
}

#[tokio::test]
async fn p07_blank_rows_below_hide_nothing_and_a_cleared_pane_tells_nothing() {
    let scene = Scene::sized((200, 60));
    let rows = format!("● Done.\n\n● Twice.\n\n{FINISHED}\n\n{}", boxed(200, "", "? for shortcuts"));
    let short = scene.show("short", &rows);
    scene.expect(short, State::Idle, "").await;
    let cleared = scene.play("cleared", "printf '\\033[H\\033[2J'\nread -r _\n");
    // The agent lives and shows nothing: its own word, on which nothing is done.
    let verdict = scene.expect(cleared, State::Empty, "").await;
    assert_eq!((verdict.input, verdict.agent.as_deref()), (None, Some("claude")));
}

/// Writes what a hook left of a pane, so many seconds ago.
fn hook(scene: &Scene, window: &str, pane: PaneId, state: &str, age_s: i64) {
    let at = scene.out.clock.now().at.secs() - age_s;
    let text = format!(
        r#"{{"state":"{state}","last_activity":{at},"event":"UserPromptSubmit","window":"{window}","pane":"{pane}"}}"#
    );
    let path = scene.out.state.at(format!("heartbeat/{window}.json"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[tokio::test]
async fn p09_an_interrupted_turn_is_over_whatever_the_hook_said_last() {
    let mut scene = Scene::aged(100);
    let above = "❯ Run the tests\n\n● Bash(make test)\n  ⎿ Interrupted · What should Claude do instead?";
    let pane = scene.show("stopped", &with_box(above, "? for shortcuts"));
    hook(&scene, "stopped", pane, "busy", 0);
    // At once the hook may be ahead of the screen.
    scene.expect(pane, State::Busy, "hook-busy").await;
    for later in [4, 5, 6] {
        scene.later = Duration::from_secs(later);
        scene.look(pane).await;
    }
    scene.expect(pane, State::Idle, "").await;
}

#[tokio::test]
async fn p11_a_long_call_under_an_old_hook_is_never_idle() {
    let mut scene = Scene::aged(3600);
    let above = "● Bash(make all)\n  ⎿ Running… (19m 58s)\n\n✻ Brewing… (20m 2s · ↓ 1.2k tokens)";
    let busy = scene.show("busy", &with_box(above, "? for shortcuts"));
    let told = scene.show("told", "● Bash(make all)\n  ⎿ Running…\n");
    for (window, pane) in [("busy", busy), ("told", told)] {
        hook(&scene, window, pane, "busy", 1200);
    }
    scene.expect(busy, State::Busy, "").await;
    for _ in 0..40 {
        let seen = scene.look_at_all().await;
        assert_eq!(seen[&busy].state, State::Busy);
        assert!(matches!(seen[&told].state, State::Busy | State::Unknown), "{:?}", seen[&told]);
        scene.later += Duration::from_secs(15);
    }
}

#[tokio::test]
async fn p12_every_standard_screen_is_read_at_every_width() {
    let scene = Scene::aged(100);
    let mut expected = Vec::new();
    let mut overlays = Vec::new();
    for width in [30, 40, 64, 80, 131] {
        let boxed = |above: &str| format!("{above}\n\n{}", boxed(width, "", "? for shortcuts"));
        for (name, screen, state, overlay) in [
            (
                "idle",
                boxed(&format!("● The change is in, and every test of the suite passes.\n\n{FINISHED}")),
                State::Idle,
                None,
            ),
            ("busy", boxed("✻ Frobnicating… (12s · ↓ 340 tokens · esc to interrupt)"), State::Busy, None),
            ("perm", ruled(width, PERMISSION), State::Blocked, Some(Overlay::Permission)),
            ("ask", ruled(width, QUESTION), State::Blocked, Some(Overlay::AskUq)),
            ("trust", ruled(width, TRUST), State::Blocked, Some(Overlay::WorkspaceTrust)),
            ("limit", boxed(&format!("❯ Go on\n  {LIMIT}")), State::OverLimit, None),
        ] {
            let name = format!("{name}{width}");
            let pane = scene.show_resized(&name, &screen, (width, 40));
            expected.push((pane, name.clone(), state));
            overlays.push((pane, name, overlay));
        }
    }
    let mut wrong = wrong_after_all(&scene, &expected).await;
    let seen = scene.look_at_all().await;
    for (pane, name, overlay) in overlays {
        let reset = name.starts_with("limit").then_some("8pm_Asia/Tokyo");
        if (seen[&pane].overlay, seen[&pane].reset_at.as_deref()) != (overlay, reset) {
            let verdict = &seen[&pane];
            wrong.push(format!("{name}: {:?} {:?}: {:?}", verdict.overlay, verdict.reset_at, verdict.evidence));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[tokio::test]
async fn p12_a_screen_that_wraps_as_its_pane_shrinks_is_read_as_before() {
    let mut scene = Scene::aged(100);
    // It fills the pane, so that its last rows stay in view.
    let full = "● The change is in.\n".repeat(40);
    let rule = "─".repeat(80);
    let under = format!("\n{rule}\n❯\u{a0}\n{rule}\n  ? for shortcuts\n");
    let mut expected = Vec::new();
    for width in [30, 45, 64, 77, 79] {
        for (name, above, state) in [
            ("idle", FINISHED, State::Idle),
            ("busy", "✻ Frobnicating… (12s · ↓ 340 tokens · esc to interrupt)", State::Busy),
        ] {
            let name = format!("{name}{width}");
            let pane = scene.show_resized(&name, &format!("{full}\n{above}\n{under}"), (80, 40));
            expected.push((pane, name, state, width));
        }
    }
    let states: Vec<_> = expected.iter().map(|(pane, name, state, _)| (*pane, name.clone(), *state)).collect();
    expect_all(&scene, &states).await;
    for (pane, _, _, width) in &expected {
        scene.server.run(&["resize-window", "-t", &pane.to_string(), "-x", &width.to_string(), "-y", "40"]);
    }
    for _ in 0..4 {
        scene.later += Duration::from_secs(60);
        scene.look_at_all().await;
    }
    expect_all(&scene, &states).await;
}

#[tokio::test]
async fn p15_quoted_dialogs_are_text() {
    let scene = Scene::aged(100);
    let mut expected = Vec::new();
    for (name, quoted) in [("perm", PERMISSION), ("ask", QUESTION), ("trust", TRUST), ("limit", LIMIT)] {
        for (how, indent) in [("flush", ""), ("indented", "  ")] {
            let quoted = indented(indent, quoted);
            let above = format!("● The file says:\n\n{quoted}\n● That is all.\n\n{FINISHED}");
            let pane = scene.show(&format!("{name}-{how}"), &with_box(&above, "? for shortcuts"));
            expected.push((pane, format!("{name} {how}"), State::Idle));
        }
    }
    let all = format!("● All of them:\n\n{PERMISSION}\n{QUESTION}\n{LIMIT}\n\n{TRUST}\n\n● That is all.\n\n{FINISHED}");
    expected.push((scene.show("all", &with_box(&all, "? for shortcuts")), "all".into(), State::Idle));
    expect_all(&scene, &expected).await;
    let seen = scene.look_at_all().await;
    for (pane, what, _) in &expected {
        assert_eq!((seen[pane].overlay, seen[pane].input), (None, Some(InputRow::Blank)), "{what}");
    }
}

#[tokio::test]
async fn p27_wide_glyphs_and_right_to_left_text_change_no_verdict() {
    let scene = Scene::aged(100);
    let texts = [
        ("zh", "所有测试都通过了，可以合并这个分支。"),
        ("ko", "모든 테스트가 통과했습니다. 병합해도 됩니다."),
        ("emoji", "Family 👨‍👩‍👧‍👦 flag 🏳️‍🌈 thumbs 👍🏽 done ✅"),
        ("rtl", "كل الاختبارات ناجحة ويمكن الدمج"),
    ];
    for (name, text) in texts {
        let idle =
            scene.show(&format!("idle-{name}"), &with_box(&format!("● {text}\n\n{FINISHED}"), "? for shortcuts"));
        scene.expect(idle, State::Idle, "").await;
        let ask = QUESTION.replace("Which store should the service use?", text).replace("SQLite", text);
        let ask = scene.show(&format!("ask-{name}"), &ruled(100, &ask));
        let verdict = scene.expect(ask, State::Blocked, "").await;
        assert_eq!(verdict.overlay, Some(Overlay::AskUq), "{name}");
        assert!(!line_of(&verdict, "option-under-cursor").is_empty(), "{name}");
        let draft = format!(
            "● {text}\n\n{FINISHED}\n\n{}",
            boxed(100, &format!("\u{1b}[97m{text}\u{1b}[39m"), "? for shortcuts")
        );
        let draft = scene.show(&format!("draft-{name}"), &draft);
        let verdict = scene.expect(draft, State::UserTyping, "").await;
        assert_eq!(verdict.input, Some(InputRow::Typed), "{name}");
    }
}

#[tokio::test]
async fn most_panes_that_turn_into_one_class_at_once_are_believed_only_when_further_sweeps_agree() {
    let mut scene = Scene::aged(100);
    fs::write(scene.server.path("i"), with_box(&format!("● Done.\n\n{FINISHED}"), "? for shortcuts")).unwrap();
    fs::write(scene.server.path("d"), ruled(100, PERMISSION)).unwrap();
    let script = format!(
        "cat {idle}\nwhile [ ! -e {flag} ]; do read -t 0.05 -r _; done\nprintf '\\033[H\\033[2J'\ncat {dialog}\nread -r _\n",
        idle = scene.server.path("i").display(),
        flag = scene.server.path("flag").display(),
        dialog = scene.server.path("d").display()
    );
    let panes: Vec<PaneId> = (0..6).map(|n| scene.play(&format!("w{n}"), &script)).collect();
    let idle: Vec<_> = panes.iter().map(|pane| (*pane, pane.to_string(), State::Idle)).collect();
    expect_all(&scene, &idle).await;
    fs::write(scene.server.path("flag"), "").unwrap();
    for pane in &panes {
        scene.server.shows(*pane, "Do you want to proceed?").await;
    }
    let doubt =
        |scene: &Scene| scene.out.board.faults().iter().filter(|fault| fault.mode == Mode::FleetChanged).count();
    for _ in 0..2 {
        let seen = scene.look_at_all().await;
        for pane in &panes {
            assert_eq!((seen[pane].state, seen[pane].held), (State::Idle, true), "{:?}", seen[pane].evidence);
        }
        assert_eq!(doubt(&scene), 1);
    }
    scene.later += Duration::from_secs(6);
    let seen = scene.look_at_all().await;
    for pane in &panes {
        assert_eq!((seen[pane].state, seen[pane].held), (State::Blocked, false), "{:?}", seen[pane].evidence);
    }
    assert_eq!(doubt(&scene), 0);
}
