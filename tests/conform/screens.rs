//! What is read of a screen, and what an act compares with it.

use nexus_watcher::logic::ids::PaneId;
use nexus_watcher::sys::tmux::{Act, ActRefusal, Capture, CaptureRequest, GuardedAct, Key, Reading, Tmux as _};

use crate::support::world::ask::{done, enter, facts, guarded, refused, rows, shows, text, whole};
use crate::support::world::{Program, SIZE, World};

const SCREEN: [&str; 4] =
    ["❯\u{a0}a,b #{pid} {x} a*b?c[d] 100% C:\\x", "  日本 é  ", "[Pasted text #1 +4 lines]", "wide: 日本x"];

pub(crate) async fn the_screen_is_compared_literally<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Shows(SCREEN.to_vec())).await;
    let base = guarded(world, pane, Act::Press(vec![Key::LetterI])).await;
    let changed = async |act: GuardedAct| refused(world, &act, ActRefusal::ScreenChanged).await;
    let of = |text: &str| vec![text.to_owned()];
    for here in
        ["❯\u{a0}a", "#{pid} {x}", "a*b?c[d]", "100%", "C:\\x", "日本 é", "日本x", "text #1 +4", "end ", "\u{a0}"]
    {
        done(world, &GuardedAct { require: of(here), ..base.clone() }).await;
        changed(GuardedAct { refuse: of(here), ..base.clone() }).await;
    }
    for absent in ["❯ a", "a.b", "A", "c[a-z]", "本日", "END", "\\\\", ".*"] {
        changed(GuardedAct { require: of(absent), ..base.clone() }).await;
        done(world, &GuardedAct { refuse: of(absent), ..base.clone() }).await;
    }
    for row in SCREEN {
        done(world, &GuardedAct { rows: of(row), ..base.clone() }).await;
        done(world, &GuardedAct { rows: of(&format!("{row}   ")), ..base.clone() }).await;
        changed(GuardedAct { rows: of(&format!("{row}.")), ..base.clone() }).await;
        changed(GuardedAct { rows: of(&format!(".{row}")), ..base.clone() }).await;
    }
    for part in ["日本 é", "[Pasted text #1", "x", ".*"] {
        changed(GuardedAct { rows: of(part), ..base.clone() }).await;
    }
    let all = GuardedAct {
        require: vec!["end".into(), "日本".into()],
        rows: SCREEN.map(str::to_owned).to_vec(),
        refuse: vec!["absent".into()],
        ..base.clone()
    };
    done(world, &all).await;
    changed(GuardedAct { require: vec!["end".into(), "absent".into()], ..base }).await;
}

pub(crate) async fn a_text_across_two_rows_is_not_found<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Shows(vec!["first half", "second half"])).await;
    let base = guarded(world, pane, enter()).await;
    for across in ["half second", "halfsecond"] {
        let act = GuardedAct { require: vec![across.to_owned()], ..base.clone() };
        refused(world, &act, ActRefusal::ScreenChanged).await;
    }
    let scrolled =
        world.open("main", "v", Program::Shows(vec!["gone", ""].into_iter().chain([""; 60]).collect())).await;
    let base = guarded(world, scrolled, enter()).await;
    done(world, &GuardedAct { refuse: vec!["gone".into()], ..base.clone() }).await;
    refused(world, &GuardedAct { require: vec!["gone".into()], ..base }, ActRefusal::ScreenChanged).await;
}

pub(crate) async fn rows_are_those_of_the_visible_screen<W: World>(world: &W) {
    const LINES: [&str; 45] = [
        "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19",
        "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32", "33", "34", "35", "36", "37",
        "38", "39", "40", "41", "42", "43", "44",
    ];
    let pane = world.open("main", "w", Program::Shows(LINES.to_vec())).await;
    let screen = rows(world, whole(pane)).await;
    // Forty of the 46 lines are seen.
    assert_eq!(screen, LINES.iter().chain(&["end"]).skip(6).copied().collect::<Vec<_>>());
    for (asked, first, last) in [
        ((0, 39), 0, 39),
        ((0, 0), 0, 0),
        ((38, 39), 38, 39),
        // What lies below the screen is its last row.
        ((38, 200), 38, 39),
        ((39, 40), 39, 39),
        ((100, 200), 39, 39),
        // The order does not matter.
        ((5, 3), 3, 5),
        // What tmux takes for no number counts as not said.
        ((40_000, 50_000), 0, 39),
        ((3, 50_000), 3, 39),
    ] {
        let seen = rows(world, CaptureRequest { pane, rows: Some(asked), styled: false }).await;
        assert_eq!(seen, screen[first..=last], "{asked:?}");
    }
    assert_eq!(facts(world, pane).await.cursor, (3, 39));
    assert_eq!(facts(world, pane).await.size, SIZE);
    assert!(!facts(world, pane).await.alternate_on);
}

pub(crate) async fn blanks_at_the_end_of_a_row_are_cut<W: World>(world: &W) {
    let lines = vec!["three   ", "   ", " no-break\u{a0}", "tab\there", "  in front"];
    let pane = world.open("main", "w", Program::Shows(lines)).await;
    let seen = rows(world, whole(pane)).await;
    assert_eq!(seen[..7], ["three", "", " no-break\u{a0}", "tab     here", "  in front", "end", ""]);
    assert_eq!(seen.len(), usize::from(SIZE.1));
}

pub(crate) async fn rows_break_by_cells<W: World>(world: &W) {
    const NARROW: &str = "0123456789012345678901234567890123456789012345678901234567890123456789\
        01234567890123456789012345678901234567890123456789";
    const WIDE: &str = "日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語\
        日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語";
    let narrow = [NARROW, "x"].concat();
    let wide = ["a", WIDE].concat();
    let lines: Vec<&'static str> = vec![NARROW, narrow.leak(), WIDE, wide.leak()];
    let pane = world.open("main", "w", Program::Shows(lines)).await;
    let half = WIDE.strip_suffix('語').unwrap();
    let expected = [NARROW, NARROW, "x", WIDE, &format!("a{half}"), "語", "end"];
    assert_eq!(text(world, pane).await, expected);
    assert_eq!(facts(world, pane).await.cursor, (3, 6));
    world.print(pane, " 日");
    shows(world, pane, &[&expected[..6], &["end 日"]].concat()).await;
    assert_eq!(facts(world, pane).await.cursor, (6, 6), "a wide character takes two cells");
}

pub(crate) async fn colours_change_no_text<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Shows(SCREEN.to_vec())).await;
    let plain = rows(world, whole(pane)).await;
    let styled = rows(world, CaptureRequest { pane, rows: None, styled: true }).await;
    assert_eq!(plain, styled, "without colours both are the same");
    assert_eq!(rows(world, CaptureRequest { pane, rows: Some((1, 2)), styled: true }).await, plain[1..=2]);
}

pub(crate) async fn rows_that_scrolled_away_are_counted<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Shows([""; 49].to_vec())).await;
    assert_eq!(facts(world, pane).await.history, 10);
}

pub(crate) async fn a_question_may_follow_from_an_answer<W: World>(world: &W) {
    /// Reads the panes, and the first row of each that has one.
    struct Twice {
        panes: Vec<PaneId>,
        asked: usize,
        further: Vec<PaneId>,
        taken: Vec<(usize, Capture)>,
    }
    impl Reading for Twice {
        fn begin(&mut self) {
            (self.asked, self.further, self.taken) = (0, Vec::new(), Vec::new());
        }
        fn next(&mut self) -> Option<(usize, CaptureRequest)> {
            if let Some(pane) = self.panes.get(self.asked) {
                self.asked += 1;
                return Some((self.asked - 1, whole(*pane)));
            }
            let pane = self.further.pop()?;
            Some((100, CaptureRequest { pane, rows: Some((0, 0)), styled: true }))
        }
        fn take(&mut self, tag: usize, request: CaptureRequest, capture: Capture) {
            if tag < 100 && capture != Capture::Gone {
                self.further.push(request.pane);
            }
            let first = |rows: Vec<String>| Capture::Rows(rows.into_iter().take(1).collect());
            let capture = if let Capture::Rows(rows) = capture { first(rows) } else { capture };
            self.taken.push((tag, capture));
        }
    }
    let one = world.open("main", "w", Program::Shows(vec!["one"])).await;
    let two = world.open("main", "w", Program::Shows(vec!["two"])).await;
    let mut reading = Twice { panes: vec![one, PaneId::new(99), two], asked: 0, further: vec![], taken: vec![] };
    let row = |text: &str| Capture::Rows(vec![text.to_owned()]);
    for _ in 0..2 {
        world.client().read(&mut reading).await.unwrap();
        let mut taken = std::mem::take(&mut reading.taken);
        taken.sort_by_key(|(tag, capture)| (*tag, format!("{capture:?}")));
        let expected = [(0, row("one")), (1, Capture::Gone), (2, row("two")), (100, row("one")), (100, row("two"))];
        assert_eq!(taken, expected);
    }
}
